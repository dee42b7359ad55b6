import { capital } from '../../../../apis/capital.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { requeue, stop, type StepResult } from '../../../../work/reconcile/result.ts';
import {
  claimUsed,
  networkInterfaceUIDs,
  releaseClaims,
  releaseNetworkInterfaces,
  type ClaimDeps,
} from './claiming.ts';
import { createMachine, type CreateDeps } from './create-machine.ts';
import { decideMachine, exchangesOf, type Situation } from './decision.ts';
import { deleteRuntimeMachines, type DeleteDeps } from './delete-machines.ts';
import { keepMachine, type KeepingDeps } from './keep-machine.ts';
import { downwardOf } from './keys.ts';
import type { PassCollaborators, IronCorePass, IronCoreStep } from './machine-pass.ts';
import { unseenPool } from './nowhere-else.ts';
import { desiredOf, NOTHING } from './needs.ts';
import { RECHECK_MS, SOON_MS } from './rechecks.ts';
import type { SurroundingsDeps } from './surroundings.ts';
import { notRunning, reportWait, type WaitDeps } from './waiting.ts';

type Deps = SurroundingsDeps &
  CreateDeps &
  KeepingDeps &
  DeleteDeps &
  ClaimDeps &
  WaitDeps &
  Pick<PassCollaborators, 'runtimeClasses' | 'runtimes' | 'served' | 'claims' | 'rivals' | 'finalizer'>;

/** Claims what the Machine uses, decides on one thing, and does it. */
export const act = (deps: Deps): IronCoreStep => ({
  name: 'act',
  async run(pass) {
    const { downwardAPI, claims, keptUses, rivals, reports } = deps;
    const { observed, isGoing, poolName, poolUID, existing, uncertainMs, signal } = pass;
    if (!isGoing) await claimUsed(deps, observed, existing, uncertainMs === 0, signal);
    const desired = isGoing ? NOTHING : await desiredOf(deps, pass, existing.length > 0);
    if (!isGoing && uncertainMs === 0) await releaseNetworkInterfaces(deps, observed, existing, desired, signal);
    const unseen = unseenPool(deps, pass.runtime);
    const situation: Situation = {
      machine: observed,
      poolUID,
      downward: {
        labels: downwardOf(downwardAPI.machineLabels, observed.metadata),
        annotations: downwardOf(downwardAPI.machineAnnotations, observed.metadata),
      },
      claim: claims.ownOf(poolName),
      desired,
      networkInterfaceUIDs: networkInterfaceUIDs(deps, observed),
      isExchange: (exchange) =>
        unseen === undefined && keptUses.isExchange(observed, exchange, (pool) => rivals.whyNot(pool) === undefined),
      unseen,
      existing,
      uncertainMs,
    };
    keptUses.offers(observed, exchangesOf(situation));
    const decision = decideMachine(situation);
    switch (decision.kind) {
      case 'wait':
        return await reportWait(deps, pass, decision.waits);
      case 'look': {
        const problem = { reason: 'Pending', message: capital(decision.why) };
        await reports.report(observed, { problem }, signal, notRunning(observed));
        return requeue(Math.min(decision.afterMs, RECHECK_MS), decision.why);
      }
      case 'create':
        if (desired.ignored !== undefined) reports.event(observed, 'Warning', 'ImageNotUsed', desired.ignored);
        return await createMachine(deps, pass, decision.machine);
      case 'keep': {
        const result = await keepMachine(deps, pass, decision);
        // Nothing wakes it when the other pool has said what it uses.
        if (unseen === undefined || result.kind !== 'requeue') return result;
        return { ...result, afterMs: Math.min(result.afterMs, SOON_MS) };
      }
      case 'delete':
        return await deleteRuntimeMachines(deps, pass, decision);
      case 'finish':
        return await finish(deps, pass);
    }
  },
});

/** Nothing is left at the runtime: what was used is free again, and the Machine may go. */
async function finish(deps: Deps, { observed, signal }: IronCorePass): Promise<StepResult> {
  const { finalizer, uncertainty, rechecks } = deps;
  const { uid } = observed.metadata;
  await releaseClaims(deps, observed, signal);
  await finalizer.remove(observed, signal, 'destroy').catch(ignoreNotFound);
  uncertainty.forget(uid);
  rechecks.release(uid);
  rechecks.resume(uid);
  return stop;
}
