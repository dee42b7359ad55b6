/** What a client is told instead of an answer: a code of gRPC, and what to do. */
export { ServerError, Status } from 'nice-grpc';
