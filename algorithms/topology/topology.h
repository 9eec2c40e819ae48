/* Virtual topologies: which rank is whose parent and child. Pure arithmetic, no MPI.
 *
 * Trees are defined on virtual ranks, where the root is 0; a real rank is (virtual + root) mod P. Those of the in-order
 * binary tree count downwards: (root - virtual) mod P. */
#ifndef COLLWISE_TOPOLOGY_H
#define COLLWISE_TOPOLOGY_H

typedef enum {
    COLLWISE_FLAT,              /* the root has every other process as child */
    COLLWISE_CHAIN,             /* every process has one child, the next */
    COLLWISE_K_CHAIN,           /* the root heads `fanout` chains of equal length, give or take one */
    COLLWISE_BINARY,            /* balanced binary; odd virtual ranks are one subtree, even ones the other */
    COLLWISE_BINOMIAL,          /* balanced binomial: children v + 2^k with 2^k > v */
    COLLWISE_IN_ORDER_BINOMIAL, /* in-order binomial: a subtree holds consecutive virtual ranks */
    COLLWISE_IN_ORDER_BINARY,   /* balanced binary, a subtree holds consecutive virtual ranks */
    COLLWISE_KNOMIAL /* in-order k-nomial: the parent has the lowest nonzero digit cleared, in base `fanout` >= 2 */
} collwise_topology;

typedef struct {
    collwise_topology topology;
    int procs;
    int root;
    int fanout;
    int virtual_rank;
    int parent; /* real rank; -1 at the root */
    int child_count;
} collwise_tree;

/* The place of `rank` in the tree of `procs` processes rooted at `root`. `fanout` is for K-chains and k-nomials. */
collwise_tree collwise_tree_at(collwise_topology topology, int procs, int root, int rank, int fanout);

/* The real rank of child `index`, 0 <= index < child_count, in the order in which a broadcast sends to them. */
int collwise_tree_child(const collwise_tree *tree, int index);

/* The same children, nearest first by virtual rank: the order in which a reduction receives from them. */
int collwise_tree_source(const collwise_tree *tree, int index);

/* How many processes the subtree of `rank`'s child `index` holds, in an in-order binomial tree. */
int collwise_tree_child_size(const collwise_tree *tree, int index);

/* How many processes hang at or below this one, in an in-order binomial tree. */
int collwise_tree_size(const collwise_tree *tree);

/* In a binary tree: the real rank that holds the same place in the other subtree, or -1 (the root, and the last
 * process when their number is even). */
int collwise_binary_partner(const collwise_tree *tree);

/* A process's place in one of the two trees of the two-tree broadcast (two_tree.c). Time goes in steps: segment i comes
 * from the parent in step first_step + 2 i, and goes to a child in the child's step. */
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
