import { isDeepStrictEqual } from 'node:util';

import { membersOf, nonEmptyText } from '../../../apis/members.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { plain, type ConditionValue } from './conditions.ts';
import { revisionOwnersIn, type FindExternal } from './outdated.ts';

/** What a Machine says of its template, and when that changes by itself; undefined: nothing is known, or nobody asks. */
export interface UpToDate {
  readonly said: ConditionValue;
  /** Until `rollout.after` of its MachineDeployment. */
  readonly changesInMs: number | undefined;
}

/**
 * Whether a Machine is as its MachineDeployment wants it, in the words of Cluster API, which are read there. Its MachineSet counts, not itself: the
 * MachineDeployment decides about rollouts in the same way. Of a Machine without both owners somebody else says so.
 */
export function upToDateOf(machine: ClusterAPIMachine, find: FindExternal, nowMs: number): UpToDate | undefined {
  const owners = revisionOwnersIn(machine, find);
  if (owners === undefined) return undefined;
  const [current, wanted] = [owners.set, owners.deployment].map(templateOf);
  const afterMs = rolloutAfterMs(owners.deployment);
  const createdMs = fromTimestamp(owners.set.metadata.creationTimestamp) ?? nowMs;
  const isOlder = afterMs !== undefined && createdMs < afterMs;
  const differences = [
    ...(current === undefined || wanted === undefined ? [] : differencesOf(current, wanted)),
    ...(isOlder && afterMs < nowMs ? ['MachineDeployment spec.rolloutAfter expired'] : []),
  ];
  return {
    said: saidOf(machine, differences),
    changesInMs: isOlder && afterMs >= nowMs ? afterMs - nowMs + 1 : undefined,
  };
}

const TYPE = 'UpToDate';

function saidOf({ spec, status }: ClusterAPIMachine, differences: readonly string[]): ConditionValue {
  if (differences.length > 0) {
    return plain(TYPE, 'False', 'NotUpToDate', differences.map((one) => `* ${one}`).join('\n'));
  }
  const kubelet = nonEmptyText(membersOf(status?.nodeInfo)['kubeletVersion']);
  const version = spec?.version ?? '';
  if (kubelet !== undefined && kubelet !== version) {
    const message = `* Node.status.nodeInfo.kubeletVersion ${kubelet}, ${version} required`;
    return plain(TYPE, 'False', 'Updating', message);
  }
  return plain(TYPE, 'True', 'UpToDate');
}

interface Template {
  readonly version: string;
  readonly dataSecretName: string | undefined;
  readonly bootstrap: Reference | undefined;
  readonly infrastructure: Reference | undefined;
  readonly failureDomain: string;
}

/** Without a version: which one it is read in is nobody's change. */
interface Reference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}

function templateOf(object: KubeObject): Template {
  const { spec } = membersOf(membersOf(membersOf(object)['spec'])['template']);
  const { version, failureDomain, infrastructureRef, bootstrap } = membersOf(spec);
  const { configRef, dataSecretName } = membersOf(bootstrap);
  return {
    version: nonEmptyText(version) ?? '',
    dataSecretName: nonEmptyText(dataSecretName),
    bootstrap: referenceOf(configRef),
    infrastructure: referenceOf(infrastructureRef),
    failureDomain: nonEmptyText(failureDomain) ?? '',
  };
}

/** Of either version: the older one names a version beside the group. */
function referenceOf(value: unknown): Reference | undefined {
  const { apiGroup, apiVersion, kind, name } = membersOf(value);
  const named = nonEmptyText(name);
  if (named === undefined) return undefined;
  const group = nonEmptyText(apiGroup) ?? nonEmptyText(apiVersion)?.split('/')[0] ?? '';
  return { group, kind: nonEmptyText(kind) ?? '', name: named };
}

function differencesOf(current: Template, wanted: Template): readonly string[] {
  const isBootstrapSame =
    isDeepStrictEqual(current.bootstrap, wanted.bootstrap) && current.dataSecretName === wanted.dataSecretName;
  const { dataSecretName: secret = 'nil' } = current;
  const { dataSecretName: wantedSecret = 'nil' } = wanted;
  return [
    ...(current.version === wanted.version ? [] : [`Version ${current.version}, ${wanted.version} required`]),
    ...(isBootstrapSame
      ? []
      : current.bootstrap === undefined
        ? [`spec.bootstrap.dataSecretName ${secret}, ${wantedSecret} required`]
        : [behind(current.bootstrap)]),
    ...(isDeepStrictEqual(current.infrastructure, wanted.infrastructure) ? [] : [behind(current.infrastructure)]),
    ...(current.failureDomain === wanted.failureDomain
      ? []
      : [`Failure domain ${current.failureDomain}, ${wanted.failureDomain} required`]),
  ];
}

function behind(reference: Reference | undefined): string {
  return `${reference?.kind.replace(/Template$/, '') ?? ''} is not up-to-date`;
}

/** When all machines that are older are to be replaced, as either version has it. */
function rolloutAfterMs(deployment: KubeObject): number | undefined {
  const spec = membersOf(membersOf(deployment)['spec']);
  return fromTimestamp(nonEmptyText(membersOf(spec['rollout'])['after']) ?? nonEmptyText(spec['rolloutAfter']));
}
