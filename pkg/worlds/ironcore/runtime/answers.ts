import type { Event } from './gen/ironcore/event/v1alpha1/event.ts';
import type {
  CreateMachineResponse,
  ListEventsResponse,
  ListMachinesResponse,
  Machine,
  StatusResponse,
  VersionResponse,
} from './gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeClass, RuntimeFilter, RuntimeMachine, RuntimeVersion } from './runtime.ts';

/** What a runtime answered makes no sense; the message says what is wrong with it. */
export class UnusableAnswerError extends Error {
  override readonly name = 'UnusableAnswerError';
}

/** A URI begins with the name. */
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/;

/** Throws UnusableAnswerError, as the others here do. */
export function versionFrom({ runtimeName, runtimeVersion }: VersionResponse): Omit<RuntimeVersion, 'connection'> {
  if (!SCHEME.test(runtimeName)) {
    throw new UnusableAnswerError(
      `the runtime's name is ${JSON.stringify(runtimeName)}, which is not a valid URI scheme`,
    );
  }
  return { name: runtimeName, version: runtimeVersion };
}

/** Classes by name, each once. */
export function classesFrom({ machineClassStatus }: StatusResponse): readonly RuntimeClass[] {
  const classes = new Map<string, RuntimeClass>();
  for (const { machineClass, quantity } of machineClassStatus) {
    const name = machineClass?.name ?? '';
    if (name === '') throw new UnusableAnswerError('a class has no name');
    if (classes.has(name)) throw new UnusableAnswerError(`class ${name} is listed twice`);
    if (quantity < 0n) throw new UnusableAnswerError(`class ${name} has the quantity ${quantity}`);
    // More machines than a number can tell apart are as many as nobody asks for.
    const count = Number(quantity);
    classes.set(name, { name, resources: machineClass?.capabilities?.resources ?? {}, quantity: count });
  }
  return [...classes.values()];
}

/**
 * The machines of a list. One that the filter is not about is an error, not left out: a runtime that does not heed labels would have the
 * machines of others taken for ours.
 */
export function machinesFrom(
  { machines }: ListMachinesResponse,
  { id, labels = {} }: RuntimeFilter,
): readonly RuntimeMachine[] {
  const ids = new Set<string>();
  return machines.map((machine) => {
    const whole = wholeMachine(machine);
    const { metadata } = whole;
    if (ids.has(metadata.id)) throw new UnusableAnswerError(`machine ${metadata.id} is listed twice`);
    ids.add(metadata.id);
    if (id !== undefined && metadata.id !== id) {
      throw new UnusableAnswerError(`machine ${metadata.id} was returned for ${id}`);
    }
    for (const [key, value] of Object.entries(labels)) {
      if (metadata.labels[key] === value) continue;
      const has = metadata.labels[key] ?? 'none';
      throw new UnusableAnswerError(`machine ${metadata.id} has label ${key} ${has}, but ${value} was requested`);
    }
    return whole;
  });
}

export function idFrom({ machine }: CreateMachineResponse): string {
  const id = machine?.metadata?.id ?? '';
  if (id === '') throw new UnusableAnswerError('the machine has no ID');
  return id;
}

/** Those that say what happened. */
export function eventsFrom({ events }: ListEventsResponse): readonly Event[] {
  return events.filter(({ spec }) => spec?.involvedObjectMeta !== undefined);
}

function wholeMachine({ metadata, spec, status }: Machine): RuntimeMachine {
  if (metadata === undefined || metadata.id === '') throw new UnusableAnswerError('a machine has no ID');
  if (spec === undefined) throw new UnusableAnswerError(`machine ${metadata.id} has no spec`);
  // Before a runtime has looked at a machine there is nothing to say; all members are then as if they had not been sent.
  const unknown = { observedGeneration: 0n, state: 0, imageRef: '', volumes: [], networkInterfaces: [] } as const;
  const told = status ?? { ...unknown, volumes: [], networkInterfaces: [], machineConditions: [] };
  return { metadata, spec, status: told };
}
