/** API group of the four kinds. */
export const GROUP = 'machine.sapcloud.io';
/** The only served and stored version. */
export const VERSION = 'v1alpha1';
/** Value of `apiVersion` in objects and owner references. */
export const API_VERSION = `${GROUP}/${VERSION}`;
