/** Names of driver calls, as the label `operation` of the metrics spells them. */
export const OPERATIONS = {
  create: 'create_machine',
  initialize: 'initialize_machine',
  delete: 'delete_machine',
  status: 'get_machine_status',
  list: 'list_machine',
  volumeIDs: 'get_volume_ids',
} as const;

export type DriverOperation = keyof typeof OPERATIONS;
