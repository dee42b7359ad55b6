import { CORDONED_BY_MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import type { StrategicPatch } from '../../../kube/client/patch.ts';
import { hasShownPreservation, showsDrained } from './preserved-condition.ts';

/** An entry of `managedFields`: who has set which fields. */
interface FieldOwner {
  readonly manager?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: { readonly 'f:unschedulable'?: object } };
}

/** How the programs of the original are called, those of all providers, and thus their clients. */
const ORIGINAL = /^machine-controller\b/;

/**
 * Whether v0.62 of the original may have cordoned the Node for a preservation; the cache does not know who has. A Node that says that it is
 * drained keeps its cordon: it is not drained again should the machine fail, and only then tainted.
 */
export function mayHaveFormerCordon(node: Node): boolean {
  const isMarked = node.metadata.annotations?.[CORDONED_BY_MAINTENANCE_ANNOTATION] !== undefined;
  return node.spec?.unschedulable === true && !isMarked && hasShownPreservation(node) && !showsDrained(node);
}

/**
 * What makes a cordon ours that v0.62 of the original has set for a preservation, where later versions and we set a taint: our mark, with which it
 * is lifted as soon as nothing else needs it. Undefined of a cordon of anybody else: the API server records who has set a field, and
 * not who has set it again to what it was.
 */
export function markedFormerCordon(live: Node): StrategicPatch<Node> | undefined {
  if (!mayHaveFormerCordon(live)) return undefined;
  const entries: readonly FieldOwner[] = live.metadata.managedFields ?? [];
  const owners = entries.filter(({ fieldsV1 }) => fieldsV1?.['f:spec']?.['f:unschedulable'] !== undefined);
  const isOriginals = owners.length > 0 && owners.every(({ manager = '' }) => ORIGINAL.test(manager));
  return isOriginals ? { metadata: { annotations: { [CORDONED_BY_MAINTENANCE_ANNOTATION]: 'true' } } } : undefined;
}
