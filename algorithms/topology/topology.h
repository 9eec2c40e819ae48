/* Virtual topologies: each rank's parent and children. Pure arithmetic, no MPI.
 *
 * Trees are defined on virtual ranks, where the root is 0; a real rank is (virtual + root) mod P. Those of the in-order
 * binary tree count downwards: (root - virtual) mod P. */
#ifndef COLLWISE_TOPOLOGY_H
#define COLLWISE_TOPOLOGY_H

typedef enum {
    COLLWISE_FLAT,     /* all others are children of the root */
    COLLWISE_CHAIN,    /* child v + 1 */
    COLLWISE_K_CHAIN,  /* the root's children head `degree` chains of equal length, the first longer by one */
    COLLWISE_BINARY,   /* children v + 2^l and v + 2^(l+1) on level l; odd v are one subtree, even ones the other */
    COLLWISE_BINOMIAL, /* children v + 2^k for 2^k > v; the parent has the highest bit cleared */
    COLLWISE_IN_ORDER_BINOMIAL, /* children v + 2^k below v's lowest bit; subtrees are consecutive virtual ranks */
    COLLWISE_IN_ORDER_BINARY,   /* balanced binary; subtrees are consecutive virtual ranks */
    COLLWISE_KNOMIAL /* the parent has the lowest nonzero digit cleared, in base `degree` >= 2; subtrees as before */
} collwise_topology;

typedef struct {
    collwise_topology topology;
    int procs;
    int root;
    int degree;
    int virtual_rank;
    int parent; /* real rank; -1 at the root */
    int child_count;
} collwise_tree;

/* The place of `rank` in the tree of `procs` processes rooted at `root`. `degree` is used for K-chains and
 * k-nomials. */
collwise_tree collwise_tree_at(collwise_topology topology, int procs, int root, int rank, int degree);

/* The real rank of child `index`, 0 <= index < child_count, in the order of a broadcast's sends. */
int collwise_tree_child(const collwise_tree *tree, int index);

/* The same children, lowest virtual rank first: the order in which a reduction receives from them. */
int collwise_tree_source(const collwise_tree *tree, int index);

/* The number of processes in the subtree of `rank`'s child `index`, in an in-order binomial tree. */
int collwise_tree_child_size(const collwise_tree *tree, int index);

/* The number of processes in the subtree below this one, itself included, in an in-order binomial tree. */
int collwise_tree_size(const collwise_tree *tree);

/* In a binary tree: the real rank at the same place in the other subtree, or -1 (for the root, and for the last process
 * if P is even). */
int collwise_binary_partner(const collwise_tree *tree);

/* A process's place in one of the two trees of the two-tree broadcast (two_tree.c), which runs in steps: a process
 * receives segment i from its parent in step first_step + 2 i, and sends it to a child in that child's step. */
typedef struct {
    int parent; /* real rank; -1 at the root */
    int child_count;
    int children[2]; /* real ranks */
    int first_step;  /* -1 at the root */
    int child_first_steps[2];
} collwise_two_tree;

/* `tree` is 0 or 1. First steps are at most 2 floor(log2(P - 1)) + 1. */
collwise_two_tree collwise_two_tree_at(int tree, int procs, int root, int rank);

/* floor(log2 value) for value >= 1. */
int collwise_log2(int value);

#endif
