/** Source component of Events about cells. */
export const CELL_EVENT_SOURCE = 'machinist-cells';

/**
 * All Events on the Namespaces of cells, by reason. Each comment says when the Event is emitted and, after an arrow, what to do; `npm run
 * generate` writes them to docs/reference/events.md.
 */
export const CELL_EVENTS = {
  /** an annotation with prefix `cell.machine.sapcloud.io/` is no setting, or has an invalid value → correct or remove the annotation; the settings before stay in use meanwhile, and a new cell does not start */
  InvalidSettings: 'Warning',
  /** the Secret with the kubeconfig of the target cluster is missing, or cannot be used → correct the Secret; the cell starts at once */
  InvalidKubeconfig: 'Warning',
  /** a namespace that `--cell-namespaces` names lacks permissions without which nothing is possible there → apply the files that the Event names; the cell starts within seconds */
  MissingPermissions: 'Warning',
  /** a manager that has the namespace for itself, ours or the original, renews its Lease `machine-controller` or `machine-controller-manager` there; a cell that runs ends, and nothing is done until that manager has ended → stop it, or exclude the namespace from the cells */
  ManagedByAnother: 'Warning',
  /** another namespace, or all of them together, have the same target or workload cluster; nothing is done there for this one → correct the kubeconfig of one of them, or delete the Lease that the Event names */
  TargetClusterTaken: 'Warning',
  /** the kubeconfig of a namespace with Machines, or `--target-kubeconfig` of all of them, leads to another target cluster than that of the Machines, or to none; nothing is done in either → correct the kubeconfig, or the flags, or do what the Event says if the Machines are to be replaced */
  TargetClusterChanged: 'Warning',
  /** a name in annotation `cell.machine.sapcloud.io/autoscaler-client-name` is also one of another namespace; calls of autoscalers with that name are rejected → give each namespace names of its own */
  AutoscalerNameTaken: 'Warning',
  /** the labels of a namespace with Machines no longer match `--cells`; its VMs keep running → restore the label, or manage the namespace with another process */
  CellReleased: 'Warning',
} as const;

export type CellEvent = keyof typeof CELL_EVENTS;
