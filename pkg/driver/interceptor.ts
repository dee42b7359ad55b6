/** Names of driver calls, as the label `operation` of the metrics spells them. */
export const OPERATIONS = {
  create: 'create_machine',
  initialize: 'initialize_machine',
  delete: 'delete_machine',
  status: 'get_machine_status',
  list: 'list_machine',
  volumeIDs: 'get_volume_ids',
} as const;

/** One of the calls above. */
export type DriverOperation = keyof typeof OPERATIONS;

/**
 * Runs in place of a driver mutation, `send` makes it; `text` is `DRIVER create_machine ns/name`. A test build ends the process
 * before or after the n-th one, or throws after `send` to lose its answer; production has none. The interceptors of
 * pkg/kube have the same shape, so that one counter can stand in both places.
 */
export type MutationInterceptor = <R>(mutation: { readonly text: string }, send: () => Promise<R>) => Promise<R>;
