import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machines, nodes, pods } from '../../pkg/kube/client/resource.ts';
import { forCreation, pod } from '../builders.ts';
import { eventually } from '../expect/eventually.ts';
import type { MachineWorld } from './machine-world.ts';

/** Waits on a loaded machine. */
const PATIENCE_MS = 60_000;
const HOLD = 'keep.example/for-the-test';

type Values = Readonly<Record<string, string | null>>;

/** What users and agents do to one machine of a MachineWorld and its Node, and what they see. */
export class KeptOne {
  readonly name: string;
  readonly #world: MachineWorld;

  constructor(world: MachineWorld, name: string) {
    this.#world = world;
    this.name = name;
  }

  machine(): Promise<Machine> {
    return this.#world.read(this.name);
  }

  node(): Promise<Node> {
    return this.#world.user.reader.get(nodes, { name: this.name });
  }

  async onMachine(annotations: Values): Promise<void> {
    const ref = { namespace: this.#world.namespace, name: this.name };
    const patch = mergePatch(await this.machine(), { metadata: { annotations } });
    await this.#world.user.writer.patch('change', machines, ref, patch);
  }

  async onNode(metadata: { labels?: Values; annotations?: Values }): Promise<void> {
    await this.#world.user.writer.patch(
      'change',
      nodes,
      { name: this.name },
      mergePatch(await this.node(), { metadata }),
    );
  }

  /** A pod on its Node; `held` pods stay until they are let go. */
  async pod(name: string, held = false): Promise<void> {
    const made = pod((p) => {
      p.metadata.namespace = this.#world.namespace;
      p.metadata.name = name;
      p.metadata.ownerReferences = [];
      p.metadata.finalizers = held ? [HOLD] : [];
      p.spec.nodeName = this.name;
      p.spec.tolerations = [{ operator: 'Exists' }];
    });
    await this.#world.user.writer.create('create', pods, forCreation(made));
  }

  async pods(): Promise<readonly Pod[]> {
    const { items } = await this.#world.user.reader.list(pods, { namespace: this.#world.namespace });
    return items.filter(({ spec }) => spec?.nodeName === this.name);
  }

  async letGo(name: string): Promise<void> {
    const ref = { namespace: this.#world.namespace, name };
    const held = await this.#world.user.reader.get(pods, ref);
    await this.#world.user.writer.patch('change', pods, ref, mergePatch(held, { metadata: { finalizers: null } }));
  }

  /** Resolves when `look` does not throw any more. */
  async shows(look: (machine: Machine, node: Node) => void | Promise<void>): Promise<void> {
    let seen: unknown;
    await eventually(
      async () => {
        const [machine, node] = await Promise.all([this.machine(), this.node()]);
        const { conditions } = node.status ?? {};
        seen = { machine: machine.status, metadata: node.metadata, spec: node.spec, conditions };
        await look(machine, node);
      },
      { timeoutMs: PATIENCE_MS, describe: () => `${this.name}: ${JSON.stringify(seen)}` },
    );
  }
}

/** The condition of that type. */
export function conditionOf(
  {
    status,
  }: {
    readonly status?: {
      readonly conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
    };
  },
  type: string,
): { status: string; reason?: string; message?: string } | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}
