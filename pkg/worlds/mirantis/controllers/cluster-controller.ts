import { isDeepStrictEqual } from 'node:util';

import type { AllowedLabel, NodeLabelPolicy } from '../../../apis/machine/v1alpha1/node-label-policy.ts';
import { controllerOf, isBeingDeleted, keyBeside, refOf } from '../../../apis/meta.ts';
import type { CloudCluster, CloudClusterStatus } from '../api/cluster.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import { ignoreAlreadyExists, ignoreNotFound } from '../../../kube/client/errors.ts';
import { mergePatchIfUnchanged, statusPatch } from '../../../kube/client/patch.ts';
import { nodeLabelPolicies } from '../../../kube/client/resource.ts';
import { cloudClusters } from '../api/resources.ts';
import { stop, type StepResult } from '../../../work/reconcile/result.ts';
import { readAllowedLabels, readCluster } from './cluster-value.ts';
import { policyFor, policyNameOf } from './desired-cluster.ts';
import { reportableChanges } from './events.ts';
import { runFrontEndPass, type FrontEndKind, type FrontEndStatus } from './front-end-pass.ts';
import { isRequestRejected, isServed, checkAgain } from './front-end.ts';
import { listed } from './listed.ts';
import type { Problem } from './field-reader.ts';
import { changeOfStatus } from './reported-status.ts';
import type { MirantisCollaborators } from './collaborators.ts';

interface Deps extends Pick<MirantisCollaborators, 'cloudClusters' | 'labelPolicies' | 'clusters' | 'writer'> {
  readonly recorder: ObjectEvents<CloudCluster>;
}

/**
 * Makes a NodeLabelPolicy of the labels that a Cluster allows, and tells when its Machines may be taken into maintenance. Its rollouts are
 * held by the passes of its pools.
 */
export class ClusterController {
  readonly #deps: Deps;
  readonly #kind: FrontEndKind<CloudCluster>;

  constructor(deps: Deps) {
    this.#deps = deps;
    const statusOf = this.#statusOf.bind(this);
    this.#kind = { ...deps, resource: cloudClusters, owned: [], statusOf };
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const cluster = this.#deps.cloudClusters.get(key);
    if (cluster === undefined || isBeingDeleted(cluster) || !isServed(cluster)) return stop;
    return await runFrontEndPass(this.#kind, cluster, signal, async () => {
      const problems = [...(readCluster(cluster).problems ?? []), ...(await this.#limitLabels(cluster, signal))];
      return problems.length === 0 ? {} : { problems, again: checkAgain('the problems to be corrected') };
    });
  }

  /** Its NodeLabelPolicy; the problems say why labels are limited otherwise. */
  async #limitLabels(cluster: CloudCluster, signal: AbortSignal): Promise<readonly Problem[]> {
    const read = readAllowedLabels(cluster);
    if (read.value === undefined) return read.problems;
    const { allowed } = read.value;
    const { labelPolicies } = this.#deps;
    if (!labelPolicies.hasSynced) {
      const remedy = 'apply crds/machine.sapcloud.io_nodelabelpolicies.yaml and deploy/rbac/mirantis.yaml';
      return allowed === undefined
        ? []
        : [`NodeLabelPolicies cannot be read, so that labels are not limited: ${remedy}`];
    }
    const known = labelPolicies.get(keyBeside(cluster, policyNameOf(cluster)));
    if (known !== undefined && controllerOf(known)?.uid !== cluster.metadata.uid) {
      const problem = `NodeLabelPolicy ${known.metadata.name}: belongs to another owner; delete it`;
      return allowed === undefined ? [] : [problem];
    }
    try {
      await this.#follow(cluster, known, allowed, signal);
      return [];
    } catch (err) {
      if (!isRequestRejected(err)) throw err;
      return [`refused by the API server: ${err.message}`];
    }
  }

  async #follow(
    cluster: CloudCluster,
    known: NodeLabelPolicy | undefined,
    allowed: readonly AllowedLabel[] | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { writer } = this.#deps;
    if (allowed === undefined) {
      if (known === undefined || isBeingDeleted(known)) return;
      const { uid, resourceVersion } = known.metadata;
      await writer
        .delete('destroy', nodeLabelPolicies, refOf(known), { uid, resourceVersion }, { signal })
        .catch(ignoreNotFound);
      return;
    }
    const wanted = policyFor(cluster, allowed);
    if (known === undefined) {
      // One that the cache does not show yet wakes the pass when it does.
      await writer.create('create', nodeLabelPolicies, wanted, { signal }).catch(ignoreAlreadyExists);
      return;
    }
    if (isDeepStrictEqual(known.spec, wanted.spec)) return;
    const patch = mergePatchIfUnchanged(known, { spec: wanted.spec });
    await writer.patch('change', nodeLabelPolicies, refOf(known), patch, { signal });
  }

  #statusOf(cluster: CloudCluster, problems: readonly Problem[]): FrontEndStatus | undefined {
    const { clusters } = this.#deps;
    const isHeld = clusters.holdsRollouts(cluster);
    const maintenance = isHeld && clusters.areRolloutsHeld(cluster);
    const left = isHeld && readCluster(cluster).value?.maintenance === false ? clusters.inMaintenance(cluster) : [];
    const message =
      problems.length > 0
        ? problems.join('; ')
        : left.length > 0
          ? `Maintenance ends when these Machines have left it: ${left.join(', ')}`
          : maintenance
            ? 'In maintenance: rollouts are held, and Machines can enter maintenance'
            : isHeld
              ? 'Maintenance begins when all rollouts are held'
              : 'The Cluster is served';
    const before = cluster.status?.providerStatus;
    const others = listed(before?.conditions).filter(({ type }) => type !== 'LCM');
    const conditions = [{ type: 'LCM', ready: problems.length === 0, message }, ...others];
    const after: CloudClusterStatus = { maintenance, conditions };
    const change = changeOfStatus(before, after);
    if (change === undefined) return undefined;
    const wrong = new Set(problems.length > 0 ? ['LCM'] : []);
    return {
      patch: statusPatch(cluster, { providerStatus: change }),
      events: reportableChanges(before?.conditions, conditions, wrong),
    };
  }
}
