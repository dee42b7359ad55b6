import type { ContractReference } from '../../api/contract.ts';
import { isBeingDeleted, refOf } from '../../../../apis/meta.ts';
import { messageOf } from '../../../../driver/errno.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { next, type StepResult } from '../../../../work/reconcile/result.ts';
import { targetOf, type MachinePass, type ClusterAPIMachineStep, type StepDeps } from '../machine-pass.ts';
import type { ObservedObject } from '../observed.ts';
import { DELETION_RECHECK_MS, waits } from './waits.ts';

/** Deletes an object that the Machine owns, and waits until it is gone. That of somebody else is let alone. */
export function removal(
  { externals, writer }: Pick<StepDeps, 'externals' | 'writer'>,
  name: string,
  reason: string,
  of: (pass: MachinePass) => readonly [ObservedObject<unknown>, ContractReference | undefined],
): ClusterAPIMachineStep {
  return {
    name,
    async run(pass): Promise<StepResult> {
      const [seen, reference] = of(pass);
      if (reference === undefined || seen.kind === 'none') return next;
      const what = `${reference.kind} ${reference.name}`;
      const { signal, machine } = pass;
      if (seen.kind === 'absent') {
        if (await externals.isGone(machine, reference, signal)) return next;
        return waits(pass, reason, `${what} still exists`, { againMs: DELETION_RECHECK_MS });
      }
      if (seen.kind !== 'found') return next;
      const { object, resource } = seen.external;
      if (!isBeingDeleted(object)) {
        const { uid } = object.metadata;
        // Where the Node is not cared for, its API server may be no more.
        const target = pass.care === 'cared-for' ? targetOf(pass) : undefined;
        const clusters = target === undefined ? [] : [target.cluster];
        const left = await writer
          .delete('destroy', resource, refOf(object), { uid }, { signal, clusters })
          .catch(ignoreNotFound)
          .catch((err: unknown) => {
            waits(pass, reason, `Deleting ${what}: ${messageOf(err)}`);
            throw err;
          });
        if (left === undefined && (await externals.isGone(machine, reference, signal))) return next;
      }
      return waits(pass, reason, `Waiting for ${what} to be deleted`);
    },
  };
}
