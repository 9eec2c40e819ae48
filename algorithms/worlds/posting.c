/* The receive of a segment is posted while the one before is under way. */
#include "internal.h"

int collwise_posts_ahead(void) { return 1; }
