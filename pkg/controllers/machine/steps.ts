import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { NodeAccess } from '../machine-facts/node-access.ts';
import { DriverCalls } from './calls/driver-call.ts';
import { UnansweredCreations } from './calls/unanswered.ts';
import { classResolver } from './calls/class-resolution.ts';
import { VMClasses } from './calls/vm-classes.ts';
import type { MachineStep } from './context.ts';
import type { Collaborators, MachineStepsDeps } from './collaborators.ts';
import { annotations } from './explain/annotations.ts';
import { vmDeletion } from './explain/vm-deletion.ts';
import { vmState } from './explain/vm-state.ts';
import { classChange } from './explain/class-change.ts';
import { awaitTarget } from './deletion/await-target.ts';
import { deleteNode } from './deletion/delete-node.ts';
import { deletionPolicy } from './deletion/deletion-policy.ts';
import { deleteVM } from './deletion/delete-vm.ts';
import { detachVolumes } from './deletion/detach-volumes.ts';
import { drain } from './deletion/drain.ts';
import { drainHooks, terminationHooks } from './deletion/hooks.ts';
import { findNode } from './deletion/find-node.ts';
import { lateAbort } from './deletion/late-abort.ts';
import { cordonLateNode } from './deletion/late-node.ts';
import { markTerminating } from './deletion/mark-terminating.ts';
import { releaseFinalizer } from './deletion/release-finalizer.ts';
import { awaitTokenRevocation, revokeToken } from './deletion/revoke-token.ts';
import { settleCreation } from './deletion/settle-creation.ts';
import { inPlaceOutcome } from './in-place/outcome.ts';
import { inPlaceProgress } from './in-place/drain-for-update.ts';
import { maintenance } from './maintenance/maintenance.ts';
import { preservation } from './preservation/preservation.ts';
import { awaitName, beginNamed } from './creation/await-name.ts';
import { claim } from './creation/claim.ts';
import { creationTimeout } from './creation/creation-timeout.ts';
import { finalizer } from './creation/finalizer.ts';
import { health } from './health/health.ts';
import { healthTimeout } from './health/health-timeout.ts';
import { identity } from './creation/identity.ts';
import { initialize } from './creation/initialize.ts';
import { launch } from './creation/launch.ts';
import { retryTokenRevocation, MachineTokens } from './tokens/machine-tokens.ts';
import { nodeDeleted } from './node/node-deleted.ts';
import { nodeSync } from './node/node-sync.ts';
import { unidentifiedNode } from './node/unidentified-node.ts';
import { orphanedMarks } from './node/orphaned-marks.ts';
import { ownNode } from './node/own-node.ts';
import { preparation } from './preparation/preparation.ts';
import { pending } from './creation/pending.ts';
import { resolve } from './creation/resolve.ts';
import { settled } from './creation/settled.ts';
import { staleNode } from './creation/stale-node.ts';
import { DeletionTimes } from './calls/deletion-times.ts';
import { DeletionCursor } from './deletion/cursor.ts';
import { Drains } from './drain/drains.ts';
import { IdentityClaims } from './identity/identity-claims.ts';
import { timeToFailure, type TimeToFailure } from './time-to-failure.ts';
import { BrokenNodes } from './node/broken-nodes.ts';
import { DeletedNodes } from './node/deleted-nodes.ts';
import { LostNodes } from './node/lost-nodes.ts';
import { ReportedOnce } from '../../work/reconcile/reported-once.ts';
import { Retries } from './calls/retries.ts';

/** The steps of both passes, with what they remember between passes. Losing that costs repeated questions, never a VM. */
export interface MachineSteps {
  /** The life of a machine, from its creation on. Every pass runs through the list until a step ends it. */
  readonly upkeep: readonly MachineStep[];
  /** The end of a machine. The stage in its status says which step has something to do. */
  readonly deletion: readonly MachineStep[];
  readonly lostNodes: LostNodes;
  readonly deletedNodes: DeletedNodes;
  readonly brokenNodes: Pick<BrokenNodes, 'noteDelivered'>;
  readonly drains: Pick<Drains, 'blocked' | 'open'>;
  readonly retries: Pick<Retries, 'held' | 'heldClasses' | 'isExhausted'>;
  readonly timeToFailure: (machine: Machine, nodes: NodeAccess | undefined) => TimeToFailure | undefined;
  forget(uid: string): void;
}

/** Makes the steps. What several of them share is made here, the rest by each for itself. */
export function machineSteps(deps: MachineStepsDeps): MachineSteps {
  const { resourceExhaustedRetryMs } = deps.settings;
  const vmClasses = new VMClasses();
  const resolveClass = classResolver({ ...deps, vmClasses });
  const reportedOnce = new ReportedOnce();
  const retries = new Retries({ ...deps, resourceExhaustedRetryMs });
  const calls = new DriverCalls({ ...deps, retries });
  const deletionTimes = new DeletionTimes(deps);
  const unanswered = new UnansweredCreations(deps);
  const tokens = new MachineTokens(deps);
  const claims = new IdentityClaims(deps);
  const lostNodes = new LostNodes(deps);
  const deletedNodes = new DeletedNodes(deps);
  const cursor = new DeletionCursor(deps);
  const brokenNodes = new BrokenNodes(deps);
  const drains = new Drains({ ...deps, resolveClass, reportedOnce, brokenNodes });
  const given: Collaborators = {
    ...deps,
    vmClasses,
    resolveClass,
    reportedOnce,
    calls,
    deletionTimes,
    unanswered,
    tokens,
    claims,
    lostNodes,
    deletedNodes,
    brokenNodes,
    cursor,
    drains,
  };

  const correctNode = ownNode(given);
  const tellAnnotations = annotations(given);
  const tellClassChange = classChange(given);
  const createdInTime = creationTimeout(given);
  const upkeep: readonly MachineStep[] = [
    finalizer(given, createdInTime),
    correctNode,
    tellAnnotations,
    tellClassChange,
    vmState(given),
    vmDeletion(given),
    nodeDeleted(given),
    health(given),
    unidentifiedNode(given),
    retryTokenRevocation(given),
    inPlaceOutcome(given),
    healthTimeout(given),
    createdInTime,
    nodeSync(given),
    preparation(given),
    inPlaceProgress(given),
    preservation(given),
    maintenance(given),
    orphanedMarks(given),
    settled(given),
    awaitName(given),
    resolve(given),
    beginNamed(given),
    launch(given),
    staleNode(given),
    claim(given),
    identity(given),
    initialize(given),
    pending(given),
  ];
  const deletion: readonly MachineStep[] = [
    markTerminating(given),
    lateAbort(given),
    tellAnnotations,
    tellClassChange,
    deletionPolicy(given),
    settleCreation(given),
    drainHooks(given),
    awaitTarget(given),
    correctNode,
    findNode(given),
    drain(given),
    detachVolumes(given),
    cordonLateNode(given),
    terminationHooks(given),
    revokeToken(given),
    deleteVM(given),
    deleteNode(given),
    awaitTokenRevocation(given),
    releaseFinalizer,
  ];
  const shared = [reportedOnce, vmClasses, calls, unanswered, tokens, claims, lostNodes, brokenNodes, cursor, drains];
  const forget = (uid: string): void => {
    for (const one of [...shared, ...upkeep, ...deletion]) one.forget?.(uid);
  };
  return {
    upkeep,
    deletion,
    lostNodes,
    deletedNodes,
    brokenNodes,
    drains,
    retries,
    timeToFailure: (one, nodes) => timeToFailure(given, one, nodes),
    forget,
  };
}
