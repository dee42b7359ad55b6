/** Namespace of the Machine. A Node with this label is a VM. */
export const KWOK_NAMESPACE_LABEL = 'kwok.machine.sapcloud.io/namespace';
/** Identity of the control cluster. */
export const KWOK_CLUSTER_ANNOTATION = 'kwok.machine.sapcloud.io/cluster';
/** Name of the MachineClass. */
export const KWOK_CLASS_ANNOTATION = 'kwok.machine.sapcloud.io/class';
/** UID of the Machine. */
export const KWOK_MACHINE_UID_ANNOTATION = 'kwok.machine.sapcloud.io/machine-uid';
