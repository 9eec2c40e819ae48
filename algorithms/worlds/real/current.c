/* The calling thread notes here which collective it runs. */
#include "current.h"

_Thread_local collwise_current *collwise_now;
