import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { ADMIN, type Subject } from '../../hack/control-plane/pki.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import type { Informer } from '../../pkg/kube/cache/lister.ts';
import type { ServedWorld } from '../../pkg/controllers/world.ts';
import type { Gate } from '../../pkg/kube/gate/gate.ts';
import { MACHINE_LEASE } from '../../pkg/kube/leader/names.ts';
import type { RequestRecord } from '../../pkg/kube/client/transport.ts';
import type { OperatorHooks } from '../../pkg/operator/manager-process.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { eventually } from '../expect/eventually.ts';
import { openGate } from './kube-session.ts';

/** Which controllers run, and how they differ from the program. */
export interface OperatorSessionOptions {
  readonly connection: Connection;
  /** Who it is to the API server; an administrator, unless told otherwise. */
  readonly subject?: Subject;
  readonly namespace: string;
  readonly controllers: string;
  readonly flags?: Readonly<Record<string, string>>;
  /** In place of all of them. */
  readonly worlds?: readonly ServedWorld[];
  readonly hooks?: Omit<OperatorHooks, 'gate'> & { readonly gate?: Gate };
}

/** Always open, and trusting what it sees. */
const GATE: NonNullable<OperatorHooks['gate']> = {
  ...openGate,
  trustedForMs: () => Number.POSITIVE_INFINITY,
  graceLeftMs: () => 0,
  blindMs: () => 0,
};

/**
 * The program with some of its controllers and a gate that is always open: clusters `control` and `target` are the same server, which is
 * probed at the beginning only. What it has asked is written down.
 */
export class OperatorSession implements AsyncDisposable {
  readonly requests: RequestRecord[];
  readonly #manager: InProcessManager;
  readonly #directory: string;

  private constructor(manager: InProcessManager, requests: RequestRecord[], directory: string) {
    this.#manager = manager;
    this.requests = requests;
    this.#directory = directory;
  }

  /** Where its metrics are served. */
  get url(): string {
    return this.#manager.url;
  }

  /** Resolves when its controllers work. */
  static async start(options: OperatorSessionOptions): Promise<OperatorSession> {
    const { connection, namespace, controllers, flags, hooks, worlds, subject = ADMIN } = options;
    const { url, ca } = connection;
    const identity = await connection.identityFor(subject);
    const directory = mkdtempSync(join(tmpdir(), 'operator-'));
    const control = join(directory, 'control');
    const target = join(directory, 'target');
    for (const path of [control, target]) writeKubeconfig(path, { url, ca, identity });
    const requests: RequestRecord[] = [];
    const manager = await InProcessManager.start({
      kubeconfig: control,
      namespace,
      flags: {
        controllers,
        'target-kubeconfig': target,
        'machine-safety-apiserver-statuscheck-period': '1h',
        ...flags,
      },
      ...(worlds && { worlds }),
      hooks: {
        freezeCached: true,
        onRequest: (record) => requests.push(record),
        ...hooks,
        gate: { ...GATE, ...hooks?.gate },
      },
    });
    const session = new OperatorSession(manager, requests, directory);
    const look = async (): Promise<void> => {
      const answer = await fetch(`${manager.url}/readyz`);
      if (!answer.ok) throw new Error(await answer.text());
    };
    await eventually(look, { timeoutMs: 120_000, describe: 'the controllers to work' });
    return session;
  }

  /** What its controllers see. */
  /** Undefined without a target cluster. */
  get nodes(): Informer<Node> | undefined {
    return this.#manager.operator.under(MACHINE_LEASE).targets.all()[0]?.nodes;
  }

  get caches(): InProcessManager['operator']['caches'] {
    return this.#manager.operator.caches;
  }

  /** How often something was asked: `count('list', 'secrets')`. */
  count(verb: RequestRecord['verb'], resource: string): number {
    return this.requests.filter((r) => r.verb === verb && r.resource === resource).length;
  }

  /** Everything that runs is given up. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#manager.abandon();
    rmSync(this.#directory, { recursive: true });
  }
}
