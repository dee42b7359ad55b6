import { CORDONED_BY_MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import type { StrategicPatch } from '../../../kube/client/patch.ts';
import { isEmptyForUpdate } from '../../machine-facts/rollout-marks.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import type { MachineContext } from '../context.ts';

/** What takes our cordon from a Node; undefined when it has none of ours. One that somebody has lifted is not ours any more. */
export function withoutOwnCordon(node: Node): StrategicPatch<Node> | undefined {
  if (node.metadata.annotations?.[CORDONED_BY_MAINTENANCE_ANNOTATION] !== 'true') return undefined;
  const metadata = { annotations: { [CORDONED_BY_MAINTENANCE_ANNOTATION]: null } };
  return node.spec?.unschedulable === true ? { metadata, spec: { unschedulable: null } } : { metadata };
}

/** Uncordons a Node that we have cordoned, unless it is needed so; as it is at this moment, not as the cache has it. */
export async function liftOwnCordon(
  { signal }: Pick<MachineContext, 'signal'>,
  nodes: NodeAccess,
  cached: Node,
  isNeeded: (live: Node) => boolean = isEmptyForUpdate,
): Promise<void> {
  if (withoutOwnCordon(cached) === undefined) return;
  const live = await nodes.read(cached.metadata.name, signal);
  if (live === undefined || live.metadata.uid !== cached.metadata.uid || isNeeded(live)) return;
  const change = withoutOwnCordon(live);
  if (change === undefined) return;
  const { resourceVersion } = live.metadata;
  await nodes.patch(live, { ...change, metadata: { ...change.metadata, resourceVersion } }, signal);
}
