/* An MPI that records: the algorithms' sources include it as <mpi.h> in the recording build. It has only the functions
 * that algorithms may use, so that any other call fails to compile.
 *
 * Each process is recorded alone, from its start to its end. Nothing is sent: each call appends words to the process's
 * program (recorder.h). Messages carry no data, so an algorithm's control flow must not depend on what it receives,
 * with one exception: data in the program's own memory, such as lists of block sizes, does arrive. A process that needs
 * such data, or has to know how others split a communicator, is recorded again when these have been (exchanges.c). */
#ifndef COLLWISE_RECORDING_MPI_H
#define COLLWISE_RECORDING_MPI_H

#include <stddef.h>
#include <stdint.h>

typedef int MPI_Comm, MPI_Datatype, MPI_Op, MPI_Info;
typedef ptrdiff_t MPI_Aint;
typedef int64_t MPI_Request; /* its number among the requests of the process */
typedef struct {
    int unused;
} MPI_Status;

enum { MPI_COMM_NULL, MPI_COMM_WORLD };
enum { MPI_UNDEFINED = INT32_MIN };
enum { MPI_COMM_TYPE_SHARED = 1 };
enum { MPI_INFO_NULL };
enum { MPI_BYTE = 1 };
#define MPI_IN_PLACE ((void *)-1)
#define MPI_REQUEST_NULL ((MPI_Request)-1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
/* Communicators are local to the recording: making them takes no messages and no time. */
int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *part);
/* `type` is MPI_COMM_TYPE_SHARED: the members on one node, by the described placement. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part);
int MPI_Comm_free(MPI_Comm *comm);

int MPI_Send(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm);
int MPI_Recv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int destination, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,
                 MPI_Status *status);
int MPI_Isend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Issend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
               MPI_Request *request);
int MPI_Irecv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses);

/* The library's own collectives, which mock-ups call: the algorithms that the library runs for such calls are recorded
 * in their place (library_calls.h). Types are MPI_BYTE. */
int PMPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int PMPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                MPI_Datatype receive_type, int root, MPI_Comm comm);
int PMPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int receive_counts[],
                 const int displacements[], MPI_Datatype receive_type, int root, MPI_Comm comm);
int PMPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                 MPI_Datatype receive_type, int root, MPI_Comm comm);
int PMPI_Scatterv(const void *send, const int send_counts[], const int displacements[], MPI_Datatype send_type,
                  void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
int PMPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm);
int PMPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int receive_counts[],
                    const int displacements[], MPI_Datatype receive_type, MPI_Comm comm);
int PMPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm);
int PMPI_Alltoallv(const void *send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                   void *receive, const int receive_counts[], const int receive_displacements[],
                   MPI_Datatype receive_type, MPI_Comm comm);

#endif
