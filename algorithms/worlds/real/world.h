/* The machine and its MPI library, as algorithms see them on hardware. */
#ifndef COLLWISE_WORLD_H
#define COLLWISE_WORLD_H

enum {
    COLLWISE_IS_SIMULATED = 0,
    COLLWISE_TOKEN_BYTES = 0,            /* of a barrier's messages */
    COLLWISE_TAKES_SHORT_WAYS = 1,       /* messages of one segment take fewer calls and copies than by the rule */
    COLLWISE_POLLS_TAKE_TIME = 1,        /* a process that polls sees what others do meanwhile */
    COLLWISE_LIBRARY_GIVES_COPIES = 1,   /* what a datatype is made of is given as datatypes to be freed */
    COLLWISE_LIBRARY_WAITS_IN_LISTS = 1, /* its non-blocking collectives can be waited for with messages */
    COLLWISE_LIBRARY_REDUCES_GAPS = 1,   /* its reductions are right for elements with gaps, */
    COLLWISE_LIBRARY_SCANS_IN_ORDER = 1  /* and its scans for operations that do not commute */
};

/* Computation takes its own time. */
static inline double collwise_host_property(const char *property) { return (void)property, 0; }
static inline void collwise_spend(double seconds) { (void)seconds; }

#endif
