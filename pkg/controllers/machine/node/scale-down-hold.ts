import {
  SCALE_DOWN_DISABLED_ANNOTATION,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';

/** The annotations that keep the autoscaler away; undefined when it is kept away already, by us or by somebody else. */
export function scaleDownHold(node: Node): Record<string, string> | undefined {
  if (node.metadata.annotations?.[SCALE_DOWN_DISABLED_ANNOTATION] === 'true') return undefined;
  return { [SCALE_DOWN_DISABLED_ANNOTATION]: 'true', [SCALE_DOWN_DISABLED_BY_US_ANNOTATION]: 'true' };
}

/** What has to go from a Node's annotations so that the autoscaler may come; undefined when nothing of it is ours. */
export function releasedScaleDownHold({ metadata }: Node): Record<string, null> | undefined {
  const annotations = metadata.annotations ?? {};
  if (annotations[SCALE_DOWN_DISABLED_BY_US_ANNOTATION] !== 'true') return undefined;
  const gone: Record<string, null> = { [SCALE_DOWN_DISABLED_BY_US_ANNOTATION]: null };
  if (annotations[SCALE_DOWN_DISABLED_ANNOTATION] !== undefined) gone[SCALE_DOWN_DISABLED_ANNOTATION] = null;
  return gone;
}
