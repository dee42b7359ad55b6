import { readFileSync } from 'node:fs';

import { Pool, type PoolOptions } from './pool.ts';
import { SimulatedCloud } from './sim-cloud.ts';
import { Site } from './site.ts';

/** A namespace of a control cluster, with a pool whose machines join a target cluster of its own. */
export class TestCell implements AsyncDisposable {
  readonly target: Site;
  readonly cloud: SimulatedCloud;
  readonly pool: Pool;
  readonly provider: string;
  readonly #control: Site;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    control: Site,
    parts: Pick<TestCell, 'target' | 'cloud' | 'pool' | 'provider'>,
    stack: AsyncDisposableStack,
  ) {
    this.#control = control;
    this.target = parts.target;
    this.cloud = parts.cloud;
    this.pool = parts.pool;
    this.provider = parts.provider;
    this.#stack = stack;
  }

  /** Makes all but the label of the namespace, by which it is selected; with `target`, for one that cells share. */
  static async create(
    control: Site,
    provider: string,
    { target: common, ...options }: Pick<PoolOptions, 'replicas' | 'machine' | 'roles' | 'target'>,
  ): Promise<TestCell> {
    await using stack = new AsyncDisposableStack();
    const target = common ?? stack.use(await Site.drawnTarget());
    const cloud = stack.use(await SimulatedCloud.start({ site: target }));
    const pool = stack.use(await Pool.create({ site: control, cloud, target, provider, ...options }));
    const cell = new TestCell(control, { target, cloud, pool, provider }, stack.move());
    await cell.setKubeconfig(control, cell.kubeconfig);
    return cell;
  }

  get namespace(): string {
    return this.pool.namespace;
  }

  /** Of its target cluster. */
  get kubeconfig(): string {
    return readFileSync(this.target.kubeconfig, 'utf8');
  }

  /** As `--driver` takes it. */
  get driver(): string {
    return `${this.provider}=${this.cloud.address}`;
  }

  /** Labels and annotates the namespace; null takes one away. */
  async mark(
    control: Site,
    metadata: {
      readonly labels?: Readonly<Record<string, string | null>>;
      readonly annotations?: Readonly<Record<string, string | null>>;
    },
  ): Promise<void> {
    await control.api.send('PATCH', `/api/v1/namespaces/${this.namespace}`, { metadata });
  }

  async setKubeconfig(control: Site, kubeconfig: string): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/secrets`;
    const body = { metadata: { name: 'target' }, data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') } };
    const { status } = await control.api.request(`${path}/target`);
    await (status === 404 ? control.api.send('POST', path, body) : control.api.send('PATCH', `${path}/target`, body));
  }

  /** Nobody manages it afterwards: without a controller of namespaces it stays where it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.mark(this.#control, { labels: { cell: null } });
    await this.#stack.disposeAsync();
  }
}
