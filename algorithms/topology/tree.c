#include "topology/topology.h"

static int least(int a, int b) { return a < b ? a : b; }

int collwise_log2(int value) {
    int log = 0;
    while (value >>= 1) {
        log++;
    }
    return log;
}

/* K-chain: the P - 1 processes below the root are cut into K chains of consecutive virtual ranks, the first (P - 1) mod
 * K of them longer by one. */
static int chain_start(int procs, int degree, int chain) {
    int below = procs - 1;
    return 1 + chain * (below / degree) + least(chain, below % degree);
}

static int chain_of(int procs, int degree, int virtual_rank) {
    int chain = 0;
    while (chain + 1 < degree && chain_start(procs, degree, chain + 1) <= virtual_rank) {
        chain++;
    }
    return chain;
}

/* Level l of the binary tree holds the virtual ranks 2^l - 1 to 2^(l+1) - 2. */
static int binary_level(int virtual_rank) { return collwise_log2(virtual_rank + 1); }

/* In-order binomial: the size of the largest subtree that may start at a virtual rank; callers cut it off at P. */
static int in_order_span(int virtual_rank, int procs) {
    int span = 1;
    while (span < procs && (virtual_rank & span) == 0) {
        span <<= 1;
    }
    return span;
}

/* In-order binary: a subtree is its head, then the smaller half of the others below one child, then the rest below
 * another; a single other process is the first child. A place is found by descending from the root. */
typedef struct {
    int parent, size;
} in_order_place;

static int first_half(int size) { return size == 2 ? 1 : (size - 1) / 2; }

static in_order_place in_order_binary_place(int virtual_rank, int procs) {
    in_order_place place = {.parent = -1, .size = procs};
    for (int head = 0; head != virtual_rank;) {
        int first = first_half(place.size), second = head + 1 + first;
        place.parent = head;
        place.size = virtual_rank < second ? first : place.size - 1 - first;
        head = virtual_rank < second ? head + 1 : second;
    }
    return place;
}

static int in_order_binary_child(int virtual_rank, int procs, int index) {
    int size = in_order_binary_place(virtual_rank, procs).size, second = 1 + first_half(size);
    if (index > 1) {
        return procs;
    }
    int distance = index == 0 ? 1 : second;
    return distance < size ? virtual_rank + distance : procs;
}

static int real_rank(const collwise_tree *tree, int virtual_rank) {
    int steps = tree->topology == COLLWISE_IN_ORDER_BINARY ? tree->procs - virtual_rank : virtual_rank;
    return (tree->root + steps) % tree->procs;
}

static int virtual_rank_of(const collwise_tree *tree, int rank) {
    int up = (rank - tree->root + tree->procs) % tree->procs;
    return tree->topology == COLLWISE_IN_ORDER_BINARY ? (tree->procs - up) % tree->procs : up;
}

/* K-nomial: the weight of the lowest nonzero digit, in base `radix`; for 0, the smallest power not below P. */
static long knomial_weight(int virtual_rank, int procs, int radix) {
    long weight = 1;
    while (weight < procs && virtual_rank % (weight * radix) == 0) {
        weight *= radix;
    }
    return weight;
}

static int knomial_parent(int virtual_rank, int procs, int radix) {
    return virtual_rank - (int)(virtual_rank % (knomial_weight(virtual_rank, procs, radix) * radix));
}

/* One child for each value of each lower digit, those of high weight, which have the largest subtrees, first. */
static int knomial_child(int virtual_rank, int procs, int radix, int index) {
    for (long weight = knomial_weight(virtual_rank, procs, radix) / radix; weight > 0; weight /= radix) {
        int children = least(radix - 1, (int)((procs - 1 - virtual_rank) / weight));
        if (index < children) {
            return virtual_rank + (index + 1) * (int)weight;
        }
        index -= children;
    }
    return procs;
}

/* The same children, those of low weight first. */
static int knomial_nearest_child(const collwise_tree *tree, int index) {
    long weight = 1;
    int after = tree->procs - 1 - tree->virtual_rank, children = least(tree->degree - 1, after);
    while (index >= children) {
        index -= children;
        weight *= tree->degree;
        children = least(tree->degree - 1, (int)(after / weight));
    }
    return tree->virtual_rank + (index + 1) * (int)weight;
}

static int virtual_parent(const collwise_tree *tree) {
    int v = tree->virtual_rank;
    if (v == 0) {
        return -1;
    }
    switch (tree->topology) {
    case COLLWISE_FLAT:
        return 0;
    case COLLWISE_CHAIN:
        return v - 1;
    case COLLWISE_K_CHAIN:
        return v == chain_start(tree->procs, tree->degree, chain_of(tree->procs, tree->degree, v)) ? 0 : v - 1;
    case COLLWISE_BINARY: {
        int width = 1 << (binary_level(v) - 1);
        return v - width >= 2 * width - 1 ? v - 2 * width : v - width;
    }
    case COLLWISE_BINOMIAL:
        return v - (1 << collwise_log2(v));
    case COLLWISE_IN_ORDER_BINOMIAL:
        return v & (v - 1);
    case COLLWISE_IN_ORDER_BINARY:
        return in_order_binary_place(v, tree->procs).parent;
    case COLLWISE_KNOMIAL:
        return knomial_parent(v, tree->procs, tree->degree);
    }
    return -1;
}

static int virtual_child(const collwise_tree *tree, int index) {
    int v = tree->virtual_rank;
    switch (tree->topology) {
    case COLLWISE_FLAT:
        return v == 0 ? 1 + index : tree->procs;
    case COLLWISE_CHAIN:
        return index == 0 ? v + 1 : tree->procs;
    case COLLWISE_K_CHAIN:
        if (v == 0) {
            return index < tree->degree ? chain_start(tree->procs, tree->degree, index) : tree->procs;
        }
        if (index > 0 || v + 1 >= tree->procs) {
            return tree->procs;
        }
        return v + 1 == chain_start(tree->procs, tree->degree, chain_of(tree->procs, tree->degree, v + 1)) ? tree->procs
                                                                                                           : v + 1;
    case COLLWISE_BINARY:
        return index < 2 ? v + (1 << (binary_level(v) + index)) : tree->procs;
    case COLLWISE_BINOMIAL: {
        int shift = (v == 0 ? 0 : collwise_log2(v) + 1) + index;
        return shift < 31 && (1 << shift) < tree->procs ? v + (1 << shift) : tree->procs;
    }
    case COLLWISE_IN_ORDER_BINOMIAL:
        return (1 << index) < in_order_span(v, tree->procs) ? v + (1 << index) : tree->procs;
    case COLLWISE_IN_ORDER_BINARY:
        return in_order_binary_child(v, tree->procs, index);
    case COLLWISE_KNOMIAL:
        return knomial_child(v, tree->procs, tree->degree, index);
    }
    return tree->procs;
}

/* A k-nomial tree of radix P is flat; there is none of radix 1. */
static int degree_in_use(collwise_topology topology, int procs, int degree) {
    int most = topology == COLLWISE_KNOMIAL ? procs : procs - 1;
    int fewest = topology == COLLWISE_KNOMIAL ? 2 : 1;
    int bounded = least(degree, most);
    return bounded < fewest ? fewest : bounded;
}

collwise_tree collwise_tree_at(collwise_topology topology, int procs, int root, int rank, int degree) {
    collwise_tree tree = {
        .topology = topology, .procs = procs, .root = root, .degree = degree_in_use(topology, procs, degree)};
    tree.virtual_rank = virtual_rank_of(&tree, rank);
    int parent = virtual_parent(&tree);
    tree.parent = parent < 0 ? -1 : real_rank(&tree, parent);
    if (topology == COLLWISE_FLAT) {
        tree.child_count = tree.virtual_rank == 0 ? procs - 1 : 0;
    } else {
        while (virtual_child(&tree, tree.child_count) < procs) {
            tree.child_count++;
        }
    }
    return tree;
}

int collwise_tree_child(const collwise_tree *tree, int index) { return real_rank(tree, virtual_child(tree, index)); }

int collwise_tree_source(const collwise_tree *tree, int index) {
    int is_knomial = tree->topology == COLLWISE_KNOMIAL;
    return real_rank(tree, is_knomial ? knomial_nearest_child(tree, index) : virtual_child(tree, index));
}

int collwise_tree_child_size(const collwise_tree *tree, int index) {
    return least(1 << index, tree->procs - virtual_child(tree, index));
}

int collwise_tree_size(const collwise_tree *tree) {
    return least(in_order_span(tree->virtual_rank, tree->procs), tree->procs - tree->virtual_rank);
}

int collwise_binary_partner(const collwise_tree *tree) {
    int v = tree->virtual_rank;
    int partner = v % 2 == 1 ? v + 1 : v - 1;
    return v == 0 || partner >= tree->procs ? -1 : (partner + tree->root) % tree->procs;
}
