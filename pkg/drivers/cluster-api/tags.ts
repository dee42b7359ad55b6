/** UID of the Machine that an object was made for. What has no such label was not made by this driver. */
export const CLUSTER_API_MACHINE_UID_LABEL = 'cluster-api.machine.sapcloud.io/machine-uid';
/** Its MachineClass, short enough for a label: lists go by it. */
export const CLASS_LABEL = 'cluster-api.machine.sapcloud.io/class';
/** Identity of the control cluster. */
export const CLUSTER_API_CLUSTER_ANNOTATION = 'cluster-api.machine.sapcloud.io/cluster';
/** Name of the MachineClass, whole. */
export const CLUSTER_API_CLASS_ANNOTATION = 'cluster-api.machine.sapcloud.io/class-name';
/** Name of the Machine that the object was made for. */
export const MACHINE_ANNOTATION = 'cluster-api.machine.sapcloud.io/machine';
