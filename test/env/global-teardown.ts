import { stopShared } from './shared-control-plane.ts';

/** Called by jest once, after the last test. */
// oxlint-disable-next-line import/no-default-export -- jest asks for it
export default stopShared;
