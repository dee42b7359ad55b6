import { startShared } from './shared-control-plane.ts';

/** Called by jest once, before the first test of a level that needs a server. */
// oxlint-disable-next-line import/no-default-export -- jest asks for it
export default startShared;
