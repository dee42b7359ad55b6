import { EXCLUDE_DETACH_ANNOTATION } from '../../api/keys.ts';
import type { Node } from '../../../../apis/wire.ts';
import type { TrackedVolume } from '../../../../drain/volumes.ts';
import { next, type StepResult } from '../../../../work/reconcile/result.ts';
import type { Target } from '../../../../kube/targets/targets.ts';
import { targetOf, type ClusterAPIMachineStep, type StepDeps } from '../machine-pass.ts';
import { older } from '../older-conditions.ts';
import { drainedMachine, isUnreachable, isTooLate } from './of-node.ts';
import { awaitCluster, mayHaveNode, type UnreachedStep } from './reachable.ts';
import { DELETION_RECHECK_MS, notedWhileWaiting, OF_VOLUMES, started, timeLeftMs, waits } from './waits.ts';

/** Volumes that are attached to a Node, by what it says and by what VolumeAttachments say, but those of pods that stay. */
export function attachedVolumes(
  node: Node,
  { volumeAttachments }: Pick<Target, 'volumeAttachments'>,
  kept: readonly TrackedVolume[] = [],
): readonly string[] {
  const isKept = (reported: string): boolean => kept.some(({ id = '' }) => id !== '' && reported.includes(id));
  const reported = (node.status?.volumesAttached ?? []).map(({ name }) => name).filter((name) => !isKept(name));
  const attached = volumeAttachments
    .byIndex('node', node.metadata.name)
    .filter(({ status, spec }) => {
      const name = spec.source.persistentVolumeName;
      return status?.attached === true && !kept.some((volume) => volume.name === name);
    })
    .map(({ metadata }) => metadata.name);
  return [...reported, ...attached];
}

const UNREACHED: UnreachedStep = {
  reason: OF_VOLUMES,
  startTime: 'waitForNodeVolumeDetachStartTime',
  timeout: 'nodeVolumeDetachTimeoutSeconds',
};

/** Condition of the older contract. */
const SUCCEEDED = 'VolumeDetachSucceeded';

/** Waits until volumes are off the Node, or its timeout is over. */
export function detachStep({
  clock,
  rules,
  keptVolumes,
}: Pick<StepDeps, 'clock' | 'rules' | 'keptVolumes'>): ClusterAPIMachineStep {
  const step: ClusterAPIMachineStep = {
    name: 'detach-volumes',
    async run(pass) {
      const { machine, signal } = pass;
      const target = targetOf(pass);
      if (machine.metadata.annotations?.[EXCLUDE_DETACH_ANNOTATION] !== undefined) return next;
      if (isTooLate(pass) || !mayHaveNode(pass)) return next;
      if (pass.node.kind === 'unreachable') return awaitCluster(pass, pass.node.why, UNREACHED, clock.now());
      if (pass.node.kind !== 'found' || target === undefined) return next;
      const { node } = pass.node;
      const areOff = (): StepResult => {
        pass.older.push(older(SUCCEEDED, 'True'));
        return next;
      };
      if (isUnreachable(node)) return areOff();
      if (attachedVolumes(node, target).length === 0) return areOff();
      const ruleOf = await rules.of(drainedMachine(pass), target, signal);
      const kept = await keptVolumes(target, node.metadata.name, ruleOf, signal);
      const volumes = attachedVolumes(node, target, kept);
      if (volumes.length === 0) return areOff();
      const seconds = machine.spec.deletion?.nodeVolumeDetachTimeoutSeconds;
      const since = started(pass, 'waitForNodeVolumeDetachStartTime', clock.now());
      const leftMs = timeLeftMs(since, seconds, clock.now());
      if (leftMs === 0) return next;
      pass.notes.alsoAfter(Math.min(leftMs ?? DELETION_RECHECK_MS, DELETION_RECHECK_MS), 'volumes to be detached');
      const message = `Waiting for volumes to be detached: ${volumes.slice(0, 5).join(', ')}`;
      return waits(pass, OF_VOLUMES, message, { event: { type: 'Normal', reason: OF_VOLUMES } });
    },
  };
  return notedWhileWaiting(step, SUCCEEDED, OF_VOLUMES);
}
