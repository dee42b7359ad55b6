/** UID of the Machine for which the object was created. Objects without this label were not created by this driver. */
export const CLUSTER_API_MACHINE_UID_LABEL = 'cluster-api.machine.sapcloud.io/machine-uid';
/** MachineClass, shortened to the length of a label; used to list objects. */
export const CLASS_LABEL = 'cluster-api.machine.sapcloud.io/class';
/** Identity of the control cluster. */
export const CLUSTER_API_CLUSTER_ANNOTATION = 'cluster-api.machine.sapcloud.io/cluster';
/** Full name of the MachineClass. */
export const CLUSTER_API_CLASS_ANNOTATION = 'cluster-api.machine.sapcloud.io/class-name';
/** Name of the Machine for which the object was created. */
export const MACHINE_ANNOTATION = 'cluster-api.machine.sapcloud.io/machine';
