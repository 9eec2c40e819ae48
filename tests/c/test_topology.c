/* Every topology by brute force: the whole tree is built, rank by rank, and checked against what its name promises. */
#include "topology/topology.h"

#include <stdbool.h>
#include <stdio.h>

enum { MAX_PROCS = 1024, SHOWN_FAILURES = 20 };

typedef struct {
    long checks, failures;
} tally;

typedef struct {
    collwise_topology topology;
    int procs, root, degree;
    collwise_tree at[MAX_PROCS]; /* by real rank */
    int depth[MAX_PROCS];        /* steps to the root; -1 if they never reach it */
    int height;
    tally *count;
} shape;

/* Both trees of the two-tree broadcast. */
typedef struct {
    int procs, root;
    collwise_two_tree at[2][MAX_PROCS]; /* by tree and real rank */
    tally *count;
} two_trees;

static const char *const names[] = {
    "flat", "chain", "k_chain", "binary", "binomial", "in_order_binomial", "in_order_binary", "knomial"};

static void check(shape *tree, bool holds, const char *what, int line, int rank) {
    tree->count->checks++;
    if (!holds && tree->count->failures++ < SHOWN_FAILURES) {
        printf("%s:%d: not so: %s (%s, %d processes, root %d, degree %d, rank %d)\n", __FILE__, line, what,
               names[tree->topology], tree->procs, tree->root, tree->degree, rank);
    }
}

#define CHECK(tree, rank, condition) check(tree, condition, #condition, __LINE__, rank)

static void check_two(two_trees *trees, bool holds, const char *what, int line, int rank) {
    trees->count->checks++;
    if (!holds && trees->count->failures++ < SHOWN_FAILURES) {
        printf("%s:%d: not so: %s (two_tree, %d processes, root %d, rank %d)\n", __FILE__, line, what, trees->procs,
               trees->root, rank);
    }
}

#define CHECK_TWO(trees, rank, condition) check_two(trees, condition, #condition, __LINE__, rank)

static int ceil_divide(int a, int b) { return (a + b - 1) / b; }

static int ceil_log2(int value) {
    int log = 0;
    while ((1L << log) < value) {
        log++;
    }
    return log;
}

static int floor_log2(int value) { return ceil_log2(value / 2 + 1); }

/* Steps up to the root; more than P of them are a cycle. */
static int depth_of(const shape *tree, int rank) {
    int depth = 0;
    while (tree->at[rank].parent >= 0) {
        rank = tree->at[rank].parent;
        if (++depth > tree->procs || rank >= tree->procs) {
            return -1;
        }
    }
    return rank == tree->root ? depth : -1;
}

static void build(shape *tree) {
    for (int rank = 0; rank < tree->procs; rank++) {
        tree->at[rank] = collwise_tree_at(tree->topology, tree->procs, tree->root, rank, tree->degree);
    }
    tree->height = 0;
    for (int rank = 0; rank < tree->procs; rank++) {
        tree->depth[rank] = depth_of(tree, rank);
        tree->height = tree->depth[rank] > tree->height ? tree->depth[rank] : tree->height;
    }
}

/* One tree: every process hangs below the root, once, and parents and children say the same. */
static void check_tree(shape *tree) {
    int named[MAX_PROCS] = {0};
    for (int rank = 0; rank < tree->procs; rank++) {
        const collwise_tree *at = &tree->at[rank];
        CHECK(tree, rank, (at->parent < 0) == (rank == tree->root));
        CHECK(tree, rank, at->parent < tree->procs && at->parent != rank);
        CHECK(tree, rank, tree->depth[rank] >= 0);
        CHECK(tree, rank, at->child_count >= 0 && at->child_count < tree->procs);
        for (int i = 0; i < at->child_count; i++) {
            int child = collwise_tree_child(at, i);
            bool is_rank = child >= 0 && child < tree->procs;
            CHECK(tree, rank, is_rank);
            if (is_rank) {
                CHECK(tree, rank, tree->at[child].parent == rank);
                named[child]++;
            }
        }
    }
    for (int rank = 0; rank < tree->procs; rank++) {
        CHECK(tree, rank, named[rank] == (rank != tree->root));
    }
}

/* A reduction receives from all children, the nearest first. */
static void check_sources(shape *tree) {
    for (int rank = 0; rank < tree->procs; rank++) {
        const collwise_tree *at = &tree->at[rank];
        int named[MAX_PROCS] = {0}, before = 0;
        for (int i = 0; i < at->child_count; i++) {
            int child = collwise_tree_source(at, i), virtual_child = tree->at[child].virtual_rank;
            CHECK(tree, rank, tree->at[child].parent == rank);
            CHECK(tree, rank, named[child]++ == 0);
            CHECK(tree, rank, virtual_child > before);
            before = virtual_child;
        }
    }
}

static int chain_length(const shape *tree, int head) {
    int length = 1;
    while (tree->at[head].child_count > 0 && length <= tree->procs) {
        head = collwise_tree_child(&tree->at[head], 0);
        length++;
    }
    return length;
}

static void check_k_chain(shape *tree) {
    const collwise_tree *root = &tree->at[tree->root];
    int below = tree->procs - 1;
    int wanted = tree->degree < 1 ? 1 : tree->degree;
    int chains = wanted < below ? wanted : below;
    CHECK(tree, tree->root, root->child_count == chains);
    CHECK(tree, tree->root, tree->height == (chains == 0 ? 0 : ceil_divide(below, chains)));
    for (int i = 0; i < root->child_count; i++) {
        int length = chain_length(tree, collwise_tree_child(root, i));
        CHECK(tree, i, length == below / chains || length == ceil_divide(below, chains));
    }
    for (int rank = 0; rank < tree->procs; rank++) {
        CHECK(tree, rank, rank == tree->root || tree->at[rank].child_count <= 1);
    }
}

/* The root's child above `rank`. */
static int subtree_of(const shape *tree, int rank) {
    for (int steps = 0; tree->at[rank].parent != tree->root && steps < tree->procs; steps++) {
        rank = tree->at[rank].parent;
    }
    return rank;
}

static void check_partners(shape *tree) {
    int alone = 0;
    for (int rank = 0; rank < tree->procs; rank++) {
        int partner = collwise_binary_partner(&tree->at[rank]);
        if (rank == tree->root) {
            CHECK(tree, rank, partner == -1);
        } else if (partner < 0) {
            alone++;
            CHECK(tree, rank, rank == (tree->root + tree->procs - 1) % tree->procs);
        } else {
            CHECK(tree, rank, collwise_binary_partner(&tree->at[partner]) == rank);
            CHECK(tree, rank, tree->depth[partner] == tree->depth[rank]);
            CHECK(tree, rank, subtree_of(tree, partner) != subtree_of(tree, rank));
        }
    }
    CHECK(tree, tree->root, alone == (tree->procs % 2 == 0));
}

static void check_binary(shape *tree) {
    CHECK(tree, tree->root, tree->height == floor_log2(tree->procs));
    for (int rank = 0; rank < tree->procs; rank++) {
        CHECK(tree, rank, tree->at[rank].child_count <= 2);
    }
    check_partners(tree);
}

static void check_binomial(shape *tree) {
    CHECK(tree, tree->root, tree->at[tree->root].child_count == ceil_log2(tree->procs));
    CHECK(tree, tree->root, tree->height == floor_log2(tree->procs));
}

/* In-order: a process's subtree is the virtual ranks from its own on, its children's subtrees one after another. */
static void check_in_order(shape *tree) {
    for (int rank = 0; rank < tree->procs; rank++) {
        const collwise_tree *at = &tree->at[rank];
        int next = at->virtual_rank + 1;
        for (int i = 0; i < at->child_count; i++) {
            const collwise_tree *child = &tree->at[collwise_tree_child(at, i)];
            CHECK(tree, rank, child->virtual_rank == next);
            CHECK(tree, rank, collwise_tree_child_size(at, i) == collwise_tree_size(child));
            next += collwise_tree_child_size(at, i);
        }
        CHECK(tree, rank, collwise_tree_size(at) == next - at->virtual_rank);
    }
    CHECK(tree, tree->root, collwise_tree_size(&tree->at[tree->root]) == tree->procs);
}

static int process_count(const shape *tree, int head) {
    int procs = 1;
    for (int i = 0; i < tree->at[head].child_count; i++) {
        procs += process_count(tree, collwise_tree_child(&tree->at[head], i));
    }
    return procs;
}

/* The same for the binary tree, where virtual ranks count down from the root; with the last process as root, all
 * subtrees hold consecutive real ranks. */
static void check_in_order_binary(shape *tree) {
    CHECK(tree, tree->root, tree->height == floor_log2(tree->procs));
    for (int rank = 0; rank < tree->procs; rank++) {
        const collwise_tree *at = &tree->at[rank];
        int next = at->virtual_rank + 1;
        CHECK(tree, rank, at->child_count <= 2);
        CHECK(tree, rank, (at->virtual_rank + rank) % tree->procs == tree->root);
        for (int i = 0; i < at->child_count; i++) {
            int child = collwise_tree_child(at, i);
            CHECK(tree, rank, tree->at[child].virtual_rank == next);
            next += process_count(tree, child);
        }
    }
}

static int ceil_log(int value, int base) {
    int log = 0;
    for (long power = 1; power < value; power *= base) {
        log++;
    }
    return log;
}

/* Each step down changes one more digit from 0. */
static void check_knomial(shape *tree) {
    int radix = tree->degree < 2 ? 2 : tree->degree;
    int digits = ceil_log(tree->procs, radix);
    CHECK(tree, tree->root, tree->height <= digits);
    CHECK(tree, tree->root, tree->height + 1 >= digits);
    for (int rank = 0; rank < tree->procs; rank++) {
        const collwise_tree *at = &tree->at[rank];
        int nonzero = 0;
        for (int rest = at->virtual_rank; rest > 0; rest /= radix) {
            nonzero += rest % radix != 0;
        }
        CHECK(tree, rank, tree->depth[rank] == nonzero);
        CHECK(tree, rank, at->child_count <= (radix - 1) * digits);
    }
    if (radix == 2) {
        check_binomial(tree);
    }
}

static void check_shape(shape *tree) {
    build(tree);
    check_tree(tree);
    check_sources(tree);
    switch (tree->topology) {
    case COLLWISE_FLAT:
        CHECK(tree, tree->root, tree->height == (tree->procs > 1));
        break;
    case COLLWISE_CHAIN:
        CHECK(tree, tree->root, tree->height == tree->procs - 1);
        break;
    case COLLWISE_K_CHAIN:
        check_k_chain(tree);
        break;
    case COLLWISE_BINARY:
        check_binary(tree);
        break;
    case COLLWISE_BINOMIAL:
        check_binomial(tree);
        break;
    case COLLWISE_IN_ORDER_BINOMIAL:
        check_binomial(tree);
        check_in_order(tree);
        break;
    case COLLWISE_IN_ORDER_BINARY:
        check_in_order_binary(tree);
        break;
    case COLLWISE_KNOMIAL:
        check_knomial(tree);
        break;
    }
}

static void check_degrees(shape *tree) {
    const int more[] = {0, tree->procs - 2, tree->procs - 1, tree->procs, tree->procs + 5};
    for (tree->degree = 1; tree->degree <= 8; tree->degree++) {
        check_shape(tree);
    }
    for (unsigned i = 0; i < sizeof more / sizeof *more; i++) {
        tree->degree = more[i];
        check_shape(tree);
    }
}

/* Steps up to the root in one of the two trees, or -1. */
static int two_tree_depth(const two_trees *trees, int tree, int rank) {
    int depth = 0;
    while (rank != trees->root && depth <= trees->procs) {
        rank = trees->at[tree][rank].parent;
        if (rank < 0 || rank >= trees->procs) {
            return -1;
        }
        depth++;
    }
    return depth <= trees->procs ? depth : -1;
}

/* One of them: all hang below the root, once and not too deep, and receive before they send. */
static void check_one_of_two(two_trees *trees, int tree) {
    int named[MAX_PROCS] = {0};
    int height = trees->procs > 1 ? 1 + floor_log2(trees->procs - 1) : 0;
    for (int rank = 0; rank < trees->procs; rank++) {
        const collwise_two_tree *at = &trees->at[tree][rank];
        int depth = two_tree_depth(trees, tree, rank);
        CHECK_TWO(trees, rank, (at->parent < 0) == (rank == trees->root));
        CHECK_TWO(trees, rank, depth >= 0 && depth <= height);
        CHECK_TWO(trees, rank, at->first_step <= 2 * height - 1);
        CHECK_TWO(trees, rank, at->child_count <= (rank == trees->root ? 1 : 2));
        for (int i = 0; i < at->child_count; i++) {
            const collwise_two_tree *child = &trees->at[tree][at->children[i]];
            CHECK_TWO(trees, rank, child->parent == rank);
            CHECK_TWO(trees, rank, child->first_step == at->child_first_steps[i]);
            CHECK_TWO(trees, rank, child->first_step > at->first_step);
            named[at->children[i]]++;
        }
        CHECK_TWO(trees, rank, at->child_count < 2 || at->children[0] != at->children[1]);
        CHECK_TWO(trees, rank, at->child_count < 2 || (at->child_first_steps[0] + at->child_first_steps[1]) % 2 == 1);
    }
    for (int rank = 0; rank < trees->procs; rank++) {
        CHECK_TWO(trees, rank, named[rank] == (rank != trees->root));
    }
}

/* Together: nobody but the root is an inner node twice, no edge is used twice in the same direction (unless the root's
 * only one), and nobody has two segments to receive, or two to send, in one step. */
static void check_both(two_trees *trees) {
    for (int rank = 0; rank < trees->procs; rank++) {
        const collwise_two_tree *first = &trees->at[0][rank], *second = &trees->at[1][rank];
        if (rank == trees->root) {
            CHECK_TWO(trees, rank, first->child_count == second->child_count);
            CHECK_TWO(trees, rank,
                      first->child_count == 0 || first->child_first_steps[0] % 2 != second->child_first_steps[0] % 2);
        } else {
            CHECK_TWO(trees, rank, first->child_count == 0 || second->child_count == 0);
            CHECK_TWO(trees, rank, first->parent != second->parent || trees->procs == 2);
            CHECK_TWO(trees, rank, first->first_step % 2 != second->first_step % 2);
        }
    }
}

static void check_two_trees(int procs, int root, tally *count) {
    static two_trees trees; /* too large for the stack */
    trees.count = count;
    trees.procs = procs;
    trees.root = root;
    for (int tree = 0; tree < 2; tree++) {
        for (int rank = 0; rank < procs; rank++) {
            trees.at[tree][rank] = collwise_two_tree_at(tree, procs, root, rank);
        }
        check_one_of_two(&trees, tree);
    }
    check_both(&trees);
}

static void check_procs(int procs, tally *count) {
    static shape tree; /* too large for the stack */
    const int roots[] = {0, 1, procs / 2, procs - 1};
    tree.count = count;
    tree.procs = procs;
    for (unsigned i = 0; i < sizeof roots / sizeof *roots; i++) {
        tree.root = roots[i] % procs;
        check_two_trees(procs, tree.root, count);
        for (int topology = COLLWISE_FLAT; topology <= COLLWISE_KNOMIAL; topology++) {
            tree.topology = (collwise_topology)topology;
            if (tree.topology == COLLWISE_K_CHAIN || tree.topology == COLLWISE_KNOMIAL) {
                check_degrees(&tree);
            } else {
                tree.degree = 0;
                check_shape(&tree);
            }
        }
    }
}

static void check_log2(tally *count) {
    for (int value = 1; value < 5000; value++) {
        int log = collwise_log2(value);
        count->checks++;
        if (1 << log > value || 2 << log <= value) {
            count->failures++;
            printf("%s:%d: collwise_log2(%d) is %d\n", __FILE__, __LINE__, value, log);
        }
    }
}

int main(void) {
    const int larger[] = {127, 128, 129, 1000, 1023, 1024};
    tally count = {0, 0};
    check_log2(&count);
    for (int procs = 1; procs <= 200; procs++) {
        check_procs(procs, &count);
    }
    for (unsigned i = 0; i < sizeof larger / sizeof *larger; i++) {
        check_procs(larger[i], &count);
    }
    printf("%ld checks, %ld failures\n", count.checks, count.failures);
    return count.failures > 0;
}
