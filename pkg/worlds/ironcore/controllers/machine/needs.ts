import { CREATION_SENT_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { next } from '../../../../work/reconcile/result.ts';
import { claimUsed, type ClaimDeps } from './claiming.ts';
import { waitsOf } from './decision.ts';
import { desiredRuntimeMachine, type DesiredMachine } from './desired-machine.ts';
import type { PassCollaborators, IronCorePass, IronCoreStep } from './machine-pass.ts';
import { surroundingsOf, type SurroundingsDeps } from './surroundings.ts';
import { reportWait, type WaitDeps } from './waiting.ts';

type DesiredDeps = SurroundingsDeps & Pick<PassCollaborators, 'runtimeClasses'>;
type Deps = DesiredDeps & ClaimDeps & WaitDeps & Pick<PassCollaborators, NewDep>;
type NewDep = 'rechecks' | 'uncertainty' | 'rivals' | 'sightings' | 'runtimes';

/** Nothing is missing. */
export const NOTHING: DesiredMachine = {
  runtimeClass: { ready: '' },
  ignition: { ready: new Uint8Array() },
  volumes: new Map(),
  networkInterfaces: new Map(),
  hostname: undefined,
  ignored: undefined,
};

/** Waits with a Machine that nothing was ever made for: it is looked for at the runtime when it has all that it needs. */
export const needs = (deps: Deps): IronCoreStep => ({
  name: 'needs',
  async run(pass) {
    if (pass.isGoing || !isNew(deps, pass)) return next;
    await claimUsed(deps, pass.observed, [], false, pass.signal);
    const waits = waitsOf({ desired: await desiredOf(deps, pass, false) });
    return waits.length > 0 ? await reportWait(deps, pass, waits) : next;
  },
});

/** Whether nothing says that there is, or may be, a machine of the Machine. */
function isNew(
  { rechecks, uncertainty, rivals, sightings, runtimes }: Pick<PassCollaborators, NewDep>,
  { observed: { metadata, status }, poolName }: IronCorePass,
): boolean {
  const { uid, annotations } = metadata;
  return (
    (status?.machineID ?? '') === '' &&
    annotations?.[CREATION_SENT_ANNOTATION] === undefined &&
    !rechecks.isHeld(uid) &&
    uncertainty.leftMs(uid) === 0 &&
    rivals.has(poolName) &&
    rivals.whyNot(poolName) === undefined &&
    ![...runtimes.keys()].some((pool) => sightings.has(pool, uid))
  );
}

/** What the Machine is to be at the runtime, and what it needs for that. Of a machine that is there neither its class changes nor what it was started with. */
export async function desiredOf(
  deps: DesiredDeps,
  { observed, poolName, runtime, signal }: IronCorePass,
  isThere: boolean,
): Promise<DesiredMachine> {
  const classes = isThere ? [] : await deps.runtimeClasses.of(poolName, runtime, signal);
  const wanted = desiredRuntimeMachine(observed, await surroundingsOf(observed, classes, deps, signal));
  const { runtimeClass, ignition } = NOTHING;
  return isThere ? { ...wanted, runtimeClass, ignition } : wanted;
}
