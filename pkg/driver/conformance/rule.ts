import type { Subject } from './conversation.ts';
import type { Scene } from './scene.ts';

/** What a rule cannot be tried without. */
export type Requirement =
  | 'InitializeMachine'
  | 'ListMachines'
  | 'GetVolumeIDs'
  | 'idempotent_create'
  | 'LIST_SCOPE_CLASS'
  | '--bad-class'
  | '--bad-secret'
  | '--restart-command'
  | '--untagged-vm-command';

export interface Rule {
  readonly name: string;
  /** The words of proto/machine/driver/v1/driver.proto that ask for it. */
  readonly sentence: string;
  readonly requires?: readonly Requirement[];
  /** `machine` is one of the scene that has no VM yet. Throws Violation, with what the driver did instead. */
  readonly run: (scene: Scene, machine: Subject) => Promise<void>;
}

/** By name, in the order in which they are tried. */
export type Rules = Readonly<Record<string, Omit<Rule, 'name'>>>;

/** Why a rule does not apply; undefined: it does. */
export function lackOf({ requires = [] }: Rule, { capabilities, options }: Scene): string | undefined {
  const { methods, idempotentCreate, listScope } = capabilities;
  const isMet: Readonly<Record<Requirement, boolean>> = {
    InitializeMachine: methods.has('InitializeMachine'),
    ListMachines: methods.has('ListMachines'),
    GetVolumeIDs: methods.has('GetVolumeIDs'),
    idempotent_create: idempotentCreate,
    LIST_SCOPE_CLASS: listScope === 'class',
    '--bad-class': options.badClass !== undefined,
    '--bad-secret': options.badSecretData !== undefined,
    '--restart-command': options.restart !== undefined,
    '--untagged-vm-command': options.makeUntagged !== undefined,
  };
  const lack = requires.find((need) => !isMet[need]);
  if (lack === undefined) return undefined;
  return lack.startsWith('--') ? `${lack} is not set` : `GetCapabilities does not report ${lack}`;
}
