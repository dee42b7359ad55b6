/** Namespace of the Machine. A Node with this label is a VM. */
export const NAMESPACE_LABEL = 'kwok.machine.sapcloud.io/namespace';
/** Identity of the control cluster. */
export const CLUSTER_ANNOTATION = 'kwok.machine.sapcloud.io/cluster';
/** Name of the MachineClass. */
export const CLASS_ANNOTATION = 'kwok.machine.sapcloud.io/class';
/** UID of the Machine. */
export const MACHINE_UID_ANNOTATION = 'kwok.machine.sapcloud.io/machine-uid';
