/* The receive of a segment is posted when it is needed, as in Algorithm 1 of Nuriyev & Lastovetsky 2021. */
#include "internal.h"

int collwise_posts_ahead(void) { return 0; }
