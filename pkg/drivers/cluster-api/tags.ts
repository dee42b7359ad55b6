import { PRE_TERMINATE_HOOK_PREFIX } from '../../apis/cluster-api/keys.ts';

/** UID of the Machine that an object was made for. What has no such label was not made by this driver. */
export const MACHINE_UID_LABEL = 'cluster-api.machine.sapcloud.io/machine-uid';
/** Its MachineClass, short enough for a label: lists go by it. */
export const CLASS_LABEL = 'cluster-api.machine.sapcloud.io/class';
/** Identity of the control cluster. */
export const CLUSTER_ANNOTATION = 'cluster-api.machine.sapcloud.io/cluster';
/** Name of the MachineClass, whole. */
export const CLASS_ANNOTATION = 'cluster-api.machine.sapcloud.io/class-name';
/** Name of the Machine that the object was made for. */
export const MACHINE_ANNOTATION = 'cluster-api.machine.sapcloud.io/machine';
/**
 * On Machines of Cluster API: holds their infrastructure until the driver is asked to delete the machine. Nobody else drains their Nodes, so
 * that one which is deleted by hand must not go before ours has. Whoever looks after them honours it, Cluster API's core too.
 */
export const DELETION_HOOK = `${PRE_TERMINATE_HOOK_PREFIX}/machinist`;
