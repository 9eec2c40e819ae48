/* The machine and its MPI library, as algorithms see them in SMPI. */
#ifndef COLLWISE_WORLD_H
#define COLLWISE_WORLD_H

enum {
    COLLWISE_IS_SIMULATED = 1,
    /* SMPI does not charge empty messages the processor's time for sending and receiving, so that a linear barrier
     * would take no longer for more processes. */
    COLLWISE_TOKEN_BYTES = 1,
    COLLWISE_TAKES_SHORT_WAYS = 0, /* times are those of the algorithm's rule */
    COLLWISE_POLLS_TAKE_TIME = 0,  /* whoever polls would do so for ever */
    /* SimGrid (3.32 to 4.1) hands out the program's own datatypes, which MPI_Type_free would mark as freed. */
    COLLWISE_LIBRARY_GIVES_COPIES = 0,
    /* SMPI takes its own non-blocking collectives to have completed where they are waited for with others. */
    COLLWISE_LIBRARY_WAITS_IN_LISTS = 0,
    COLLWISE_LIBRARY_REDUCES_GAPS = 0,  /* its reductions are wrong for most datatypes with gaps, */
    COLLWISE_LIBRARY_SCANS_IN_ORDER = 0 /* and its MPI_Exscan of long messages for operations that do not commute */
};

/* The number that a property of the host gives, 0 without it. */
double collwise_host_property(const char *property);
/* Computation takes no time by itself, but the seconds that it is charged. */
void collwise_spend(double seconds);

#endif
