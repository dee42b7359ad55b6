import { isLabelKey, isLabelValue } from '../../../apis/label-syntax.ts';
import type { CloudCluster } from '../api/cluster.ts';
import type { AllowedLabel } from '../../../apis/machine/v1alpha1/node-label-policy.ts';
import type { Read } from './provider-value.ts';
import { FieldReader } from './field-reader.ts';

/** What a Cluster asks for, as far as we do anything about it. */
export interface ClusterValue {
  /** Worker pools are rolled out after the first Machine of the control plane, not after all of it. */
  readonly dedicatedControlPlane: boolean;
  /** Its rollouts are held, and its Machines may be taken into maintenance. */
  readonly maintenance: boolean;
}

const PATH = 'spec.providerSpec.value';
const LABELS_PATH = 'status.providerStatus.releaseRef.current';

/** Reads what a Cluster asks for; every problem is named at once. */
export function readCluster({ spec }: Pick<CloudCluster, 'spec'>): Read<ClusterValue> {
  const value = new FieldReader(spec?.providerSpec?.value ?? {}, PATH);
  const read = { dedicatedControlPlane: value.flag('dedicatedControlPlane'), maintenance: value.flag('maintenance') };
  return value.problems.length === 0 ? { value: read } : { problems: value.problems };
}

/** Which labels Nodes of a Cluster may be given; the value is undefined where it does not say: any. */
export function readAllowedLabels({
  status,
}: Pick<CloudCluster, 'status'>): Read<{ readonly allowed: readonly AllowedLabel[] | undefined }> {
  const current = status?.providerStatus?.releaseRef?.current?.allowedNodeLabels ?? undefined;
  if (current === undefined) return { value: { allowed: undefined } };
  const list = new FieldReader({ allowedNodeLabels: current }, LABELS_PATH);
  const problems: string[] = [];
  const allowed = list.list('allowedNodeLabels').flatMap((entry, i) => {
    const label = new FieldReader(entry, `${LABELS_PATH}.allowedNodeLabels[${i}]`);
    const [key, value] = [label.raw('key'), label.raw('value') ?? undefined];
    if (!isLabelKey(key)) label.wrong('key', 'must be the key of a label');
    if (value !== undefined && !isLabelValue(value)) label.wrong('value', 'must be the value of a label, or absent');
    problems.push(...label.problems);
    return isLabelKey(key) ? [{ key, ...(isLabelValue(value) && { value }) }] : [];
  });
  const all = [...list.problems, ...problems];
  return all.length === 0 ? { value: { allowed } } : { problems: all };
}
