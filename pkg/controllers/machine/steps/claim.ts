import { DriverError } from '../../../driver/error.ts';
import { next } from '../../../reconcile/result.ts';
import { noteUnanswered } from '../calls/unanswered.ts';
import type { Launched, MachineContext, MachineStep } from '../context.ts';
import { describeRefusal, rivalFor, type Identity, type Rival } from '../identity-claims.ts';
import { refuseVM } from './launch.ts';

/**
 * Refuses a VM that another Machine has: what is recorded here is what will be drained and deleted with this machine. The driver is
 * asked again later. What a creation with such an answer has really made, nobody knows: it counts as one without answer.
 */
export const claim: MachineStep = {
  name: 'claim',

  run(ctx) {
    const { machine, launched, resolved, memory, clock, log } = ctx;
    if (launched === undefined || resolved === undefined) return next;
    const rival = takenBy(ctx, launched);
    if (rival === undefined) return next;

    const error = refusalOf(launched, rival);
    noteUnanswered(ctx, error, clock.monotonicMs());
    memory.doubted.add(machine.metadata.uid);
    log.warn({ providerID: launched.providerID, other: rival.name }, 'refused a VM that another machine has');
    return refuseVM(ctx, resolved, error, 'the driver to tell of its own VM');
  },
};

/** A refused answer as a failure of the driver. */
export function refusalOf(launched: Launched, rival: Rival): DriverError {
  return new DriverError('Internal', describeRefusal(launched, rival), { unanswered: launched.how === 'created' });
}

/** Who else has the VM or the Node name; when nobody has, they are this machine's from now on. */
export function takenBy(
  { machine, machines, nodes, memory }: Pick<MachineContext, 'machine' | 'machines' | 'nodes' | 'memory'>,
  { providerID, nodeName }: Identity,
): Rival | undefined {
  if (providerID === '') return undefined;
  const identity = { providerID, nodeName: nodes === undefined ? '' : nodeName };
  return rivalFor(identity, machine, machines, nodes) ?? memory.identities.take(identity, machine);
}
