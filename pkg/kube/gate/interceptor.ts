export interface Mutation {
  /** `POST machines ns/name`, `PATCH nodes name`, `DRIVER create_machine ns/name`, … */
  readonly text: string;
}

/**
 * Stands between a mutation and the API server or driver, in tests: it may fail before `send`, after it (the answer is lost, nothing
 * learns of it), or end the process. Absent in production.
 */
export type Interceptor = <R>(mutation: Mutation, send: () => Promise<R>) => Promise<R>;
