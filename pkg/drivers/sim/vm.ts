import type { TaggedVM } from '../machine-identity.ts';

/** A VM of the simulated cloud; its name is that of the Machine and of the Node. */
export interface SimVM extends TaggedVM {
  readonly zone: string;
  readonly size: string;
  readonly address: string;
  readonly createdAtMs: number;
  readonly power: 'on' | 'off';
  /** False until InitializeMachine was called, where the provider spec asks for it. */
  readonly initialized: boolean;
  /** When it becomes a Node; undefined: never. Wall time. */
  readonly joinsAtMs: number | undefined;
  readonly nodeLabels: Readonly<Record<string, string>>;
}
