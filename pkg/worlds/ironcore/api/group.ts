/** Group of IronCore's machines, their classes and pools. */
export const COMPUTE_GROUP = 'compute.ironcore.dev';
/** Group of IronCore's volumes. */
export const STORAGE_GROUP = 'storage.ironcore.dev';
/** Group of IronCore's networks and their interfaces. */
export const NETWORKING_GROUP = 'networking.ironcore.dev';
/** Group of its IP addresses. */
export const IPAM_GROUP = 'ipam.ironcore.dev';
/** The only version of each of them. */
export const IRONCORE_VERSION = 'v1alpha1';
