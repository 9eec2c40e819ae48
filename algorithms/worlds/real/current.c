/* Where the calling thread notes which collective it runs. */
#include "current.h"

_Thread_local collwise_current *collwise_now;
