import type { DriverCode } from '../../../driver/error.ts';

/**
 * What follows from an answer of GetMachineStatus before a creation. adopt: the VM is there. create: there is none. trust: the
 * driver cannot tell, and a VM is recorded. initialize: it is there, and not finished. retry: nothing was learned.
 */
export type StatusReaction = 'adopt' | 'create' | 'trust' | 'initialize' | 'retry';

/**
 * How a creation goes on after GetMachineStatus. How long a `retry` waits, and what becomes of the driver's scratch state, says
 * the table of retries (pkg/driver/retry.ts).
 *
 * | code                    | a VM is recorded | none is    |
 * |-------------------------|------------------|------------|
 * | OK                      | adopt            | adopt      |
 * | NotFound, Unimplemented | trust            | create     |
 * | Uninitialized           | initialize       | initialize |
 * | any other               | retry            | retry      |
 *
 * Uninitialized without a VM, of a driver whose CreateMachine may be repeated, is taken as no VM.
 */
export function afterStatus(code: DriverCode, isRecorded: boolean): StatusReaction {
  switch (code) {
    case 'OK':
      return 'adopt';
    case 'NotFound':
    case 'Unimplemented':
      return isRecorded ? 'trust' : 'create';
    case 'Uninitialized':
      return 'initialize';
    default:
      return 'retry';
  }
}

/** How a creation goes on after InitializeMachine: a driver that does not know the call has nothing to initialize. */
export function afterInitialize(code: DriverCode): 'done' | 'retry' {
  return code === 'OK' || code === 'Unimplemented' ? 'done' : 'retry';
}
