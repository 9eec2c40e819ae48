/* Data-parallel training: each process computes the gradients of its own images, and an allreduce adds those of all
 * processes up, tensor by tensor or, as Horovod does, several tensors in one buffer.
 *
 *     training [--steps K] [--batch B] [--fusion-bytes F] [--overlap 0|1] [--size N] [--rate OPERATIONS]
 *
 * Each of K steps computes B images a process. Backward propagation finishes tensors from
 * the last layer to the first, and tensors that fit into F bytes together are reduced in one buffer, each alone if F is
 * 0. A buffer is reduced when its last tensor is finished, one after another; with --overlap 1 the computation goes on
 * meanwhile, as if by another core.
 *
 * With --rate the network is AlexNet, as tf_cnn_benchmarks has it: the sizes of its tensors, and the operations of its
 * layers, of which backward propagation takes twice those of the forward one. Otherwise it is a network of three dense
 * layers of N inputs, whose weights after K steps are compared with those of serial training on all images. */
#include "application.h"

#include "timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    long steps, batch, fusion_bytes, overlap;
} plan;

/* --- Buffers ----------------------------------------------------------------------------------------------------- */

/* Tensors in the order in which backward propagation finishes them: those `from` to `to` - 1 share a buffer. */
typedef struct {
    int from, to;
    size_t elements;
} buffer;

static buffer next_buffer(const size_t *elements, int tensors, int from, size_t element_bytes, long fusion_bytes) {
    buffer found = {from, from + 1, elements[from]};
    while (found.to < tensors && (found.elements + elements[found.to]) * element_bytes <= (size_t)fusion_bytes) {
        found.elements += elements[found.to++];
    }
    return found;
}

/* --- AlexNet, modelled ------------------------------------------------------------------------------------------- */

/* `places` is the number of positions at which a layer's weights are applied. */
typedef struct {
    size_t weights, biases;
    double places;
} layer;

static const layer alexnet[] = {{11 * 11 * 3 * 64, 64, 55 * 55},
                                {5 * 5 * 64 * 192, 192, 27 * 27},
                                {3 * 3 * 192 * 384, 384, 13 * 13},
                                {3 * 3 * 384 * 384, 384, 13 * 13},
                                {3 * 3 * 384 * 256, 256, 13 * 13},
                                {6 * 6 * 256 * 4096, 4096, 1},
                                {4096 * 4096, 4096, 1},
                                {4096 * 1001, 1001, 1}};
enum { LAYERS = sizeof alexnet / sizeof *alexnet, TENSORS = 2 * LAYERS };

/* The tensors' elements, and the operations of backward propagation until each is finished, for one image. */
static void list_tensors(size_t *elements, double *operations) {
    double done = 0;
    for (int i = 0; i < LAYERS; i++) {
        const layer *at = &alexnet[LAYERS - 1 - i];
        done += 4.0 * (double)at->weights * at->places;
        elements[2 * i] = at->biases;
        elements[2 * i + 1] = at->weights;
        operations[2 * i] = operations[2 * i + 1] = done;
    }
}

/* Waits until the computation, which began at `start`, has done its operations. */
static void wait_for(const application *app, double start, double operations) {
    double left = start + operations / app->rate - MPI_Wtime();
    if (left > 0) {
        program_busy_wait(left);
    }
}

static void step_modelled(application *app, const plan *how, const void *own, void *all, MPI_Op sum) {
    size_t elements[TENSORS];
    double operations[TENSORS], backward, done = 0, start = MPI_Wtime();
    list_tensors(elements, operations);
    backward = operations[TENSORS - 1];
    for (int from = 0; from < TENSORS;) {
        buffer next = next_buffer(elements, TENSORS, from, sizeof(float), how->fusion_bytes);
        double until = (double)how->batch * (backward / 2 + operations[next.to - 1]);
        if (how->overlap) {
            wait_for(app, start, until);
        } else {
            application_model(app, until - done, 1);
        }
        done = until;
        application_enter(app);
        MPI_Allreduce(own, all, (int)next.elements, MPI_FLOAT, sum, MPI_COMM_WORLD);
        application_leave(app);
        from = next.to;
    }
}

static size_t largest_buffer(const plan *how) {
    size_t elements[TENSORS], most = 0;
    double operations[TENSORS];
    list_tensors(elements, operations);
    for (int from = 0; from < TENSORS;) {
        buffer next = next_buffer(elements, TENSORS, from, sizeof(float), how->fusion_bytes);
        most = next.elements > most ? next.elements : most;
        from = next.to;
    }
    return most;
}

static void train_modelled(application *app, const plan *how) {
    size_t bytes = largest_buffer(how) * sizeof(float);
    /* For MPI_IN_PLACE the simulator would copy the data of each process. */
    void *own = application_allocate(app, bytes), *all = application_allocate(app, bytes);
    MPI_Op sum = application_sum_make(app);
    MPI_Allreduce(own, all, 1, MPI_FLOAT, sum, MPI_COMM_WORLD);
    application_begin(app);
    for (long step = 0; step < how->steps; step++) {
        step_modelled(app, how, own, all, sum);
    }
    application_end(app);
    application_sum_free(&sum);
    application_free(app, own);
    application_free(app, all);
}

static void list_calls(const application *app, const plan *how) {
    size_t elements[TENSORS];
    double operations[TENSORS];
    list_tensors(elements, operations);
    for (int from = 0; from < TENSORS;) {
        buffer next = next_buffer(elements, TENSORS, from, sizeof(float), how->fusion_bytes);
        application_list_call(app, "allreduce", next.elements * sizeof(float), how->steps);
        from = next.to;
    }
}

/* --- A small network, computed ----------------------------------------------------------------------------------- */

enum { DENSE = 3, SMALL_TENSORS = 2 * DENSE, OUTPUTS = 3 };
static const double learning_rate = 0.1;

/* Three dense layers with tanh. Tensors have the order of backward propagation: bias and weights of the last layer, of
 * the one before it, of the first. `values` and `gradients` have them one after another. */
typedef struct {
    int width[DENSE + 1];
    size_t elements[SMALL_TENSORS], all;
    double *values, *gradients;
} network;

static size_t place_of(const network *net, int tensor) {
    size_t place = 0;
    for (int i = 0; i < tensor; i++) {
        place += net->elements[i];
    }
    return place;
}

static double *biases_of(const network *net, double *of, int at) { return of + place_of(net, 2 * (DENSE - 1 - at)); }
static double *weights_of(const network *net, double *of, int at) {
    return of + place_of(net, 2 * (DENSE - 1 - at) + 1);
}

static network network_make(int size) {
    network net = {.width = {size, size, size / 2 + 1, OUTPUTS}};
    for (int at = 0; at < DENSE; at++) {
        net.elements[2 * (DENSE - 1 - at)] = (size_t)net.width[at + 1];
        net.elements[2 * (DENSE - 1 - at) + 1] = (size_t)net.width[at + 1] * (size_t)net.width[at];
    }
    net.all = place_of(&net, SMALL_TENSORS);
    net.values = calloc(net.all, sizeof *net.values);
    net.gradients = calloc(net.all, sizeof *net.gradients);
    for (size_t i = 0; i < net.all; i++) {
        net.values[i] = ((double)application_noise((unsigned)i, 0, 2001) - 1000) / 2000 / size;
    }
    return net;
}

static void network_free(network *net) {
    free(net->values);
    free(net->gradients);
}

/* Adds the gradients of one image's squared error; `nodes` and `errors` have room for all nodes. Returns the error. */
static double add_image(network *net, unsigned image, double *nodes, double *errors) {
    double *in = nodes, loss = 0;
    for (int j = 0; j < net->width[0]; j++) {
        in[j] = (double)application_noise(image, (unsigned)j + 1, 201) / 100 - 1;
    }
    for (int at = 0; at < DENSE; in += net->width[at++]) {
        const double *weights = weights_of(net, net->values, at), *biases = biases_of(net, net->values, at);
        for (int i = 0; i < net->width[at + 1]; i++) {
            double sum = biases[i];
            for (int j = 0; j < net->width[at]; j++) {
                sum += weights[i * net->width[at] + j] * in[j];
            }
            in[net->width[at] + i] = tanh(sum);
        }
    }
    double *error = errors + (in - nodes);
    for (int i = 0; i < OUTPUTS; i++) {
        double wrong = in[i] - (application_noise(image, 0, OUTPUTS) == (unsigned)i ? 0.9 : -0.9);
        error[i] = wrong * (1 - in[i] * in[i]);
        loss += wrong * wrong / 2;
    }
    for (int at = DENSE - 1; at >= 0; at--) {
        const double *weights = weights_of(net, net->values, at);
        double *by_weight = weights_of(net, net->gradients, at), *by_bias = biases_of(net, net->gradients, at);
        in -= net->width[at];
        double *before = error - net->width[at];
        memset(before, 0, (size_t)net->width[at] * sizeof *before);
        for (int i = 0; i < net->width[at + 1]; i++) {
            by_bias[i] += error[i];
            for (int j = 0; j < net->width[at]; j++) {
                by_weight[i * net->width[at] + j] += error[i] * in[j];
                before[j] += error[i] * weights[i * net->width[at] + j] * (1 - in[j] * in[j]);
            }
        }
        error = before;
    }
    return loss;
}

/* Gradients of the images `first` to `first + count` - 1; returns their mean error. */
static double compute_gradients(network *net, unsigned first, long count) {
    size_t nodes = 0;
    for (int at = 0; at <= DENSE; at++) {
        nodes += (size_t)net->width[at];
    }
    double *values = calloc(nodes, sizeof *values), *errors = calloc(nodes, sizeof *errors), loss = 0;
    memset(net->gradients, 0, net->all * sizeof *net->gradients);
    for (long image = 0; image < count; image++) {
        loss += add_image(net, first + (unsigned)image, values, errors);
    }
    free(values);
    free(errors);
    return loss / (double)count;
}

static void descend(network *net, double images) {
    for (size_t i = 0; i < net->all; i++) {
        net->values[i] -= learning_rate * net->gradients[i] / images;
    }
}

static void reduce_gradients(application *app, network *net, long fusion_bytes) {
    for (int from = 0; from < SMALL_TENSORS;) {
        buffer next = next_buffer(net->elements, SMALL_TENSORS, from, sizeof(double), fusion_bytes);
        application_enter(app);
        MPI_Allreduce(MPI_IN_PLACE, net->gradients + place_of(net, from), (int)next.elements, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
        application_leave(app);
        from = next.to;
    }
}

/* The error of all images under the weights after training. Sums are added up in another order than serially. */
static int train(application *app, const plan *how, int size, double *loss) {
    network net = network_make(size);
    long images = how->batch * app->procs;
    application_begin(app);
    for (long step = 0; step < how->steps; step++) {
        application_compute_begin(app);
        compute_gradients(&net, (unsigned)(app->rank * how->batch), how->batch);
        application_compute_end(app, 6.0 * (double)net.all * (double)how->batch);
        reduce_gradients(app, &net, how->fusion_bytes);
        descend(&net, (double)images);
    }
    application_end(app);
    int same = 1;
    network serial = network_make(size);
    for (long step = 0; step < how->steps; step++) {
        compute_gradients(&serial, 0, images);
        descend(&serial, (double)images);
    }
    for (size_t i = 0; i < net.all; i++) {
        same = same && fabs(net.values[i] - serial.values[i]) < 1e-12;
    }
    *loss = compute_gradients(&net, 0, images);
    network_free(&net);
    network_free(&serial);
    return same;
}

int main(int argc, char **argv) {
    application app = {.name = "training"};
    plan how = {.steps = 4, .batch = 8, .fusion_bytes = 1 << 26};
    int size = 16;
    const program_option options[] = {{"--steps", OPTION_LONG, &how.steps, 1, 1 << 30, NULL},
                                      {"--batch", OPTION_LONG, &how.batch, 1, 1 << 20, NULL},
                                      {"--fusion-bytes", OPTION_LONG, &how.fusion_bytes, 0, 1 << 30, NULL},
                                      {"--overlap", OPTION_LONG, &how.overlap, 0, 1, NULL},
                                      {"--size", OPTION_INT, &size, 1, 4096, NULL},
                                      APPLICATION_OPTIONS(app)};
    application_start(&app, &argc, &argv, options);
    double loss = 0;
    int correct = 1;
    if (app.lists_calls) {
        list_calls(&app, &how);
    } else if (app.rate > 0) {
        train_modelled(&app, &how);
    } else {
        correct = train(&app, &how, size, &loss);
        MPI_Allreduce(MPI_IN_PLACE, &correct, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    return application_finish(&app, loss, correct);
}
