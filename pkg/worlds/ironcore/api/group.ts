export const COMPUTE_GROUP = 'compute.ironcore.dev';
export const STORAGE_GROUP = 'storage.ironcore.dev';
export const NETWORKING_GROUP = 'networking.ironcore.dev';
export const IPAM_GROUP = 'ipam.ironcore.dev';
/** The only version of these groups. */
export const IRONCORE_VERSION = 'v1alpha1';
