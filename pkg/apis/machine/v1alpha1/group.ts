export const GROUP = 'machine.sapcloud.io';
/** The only served and stored version. */
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;
