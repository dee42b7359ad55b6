import type { Api } from '../../hack/control-plane/api.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { CrdSet } from '../env/crds.ts';
import { privateControlPlane } from '../env/environment.ts';
import { grant } from '../integration/shipped-roles.ts';

/** The users that deploy/rbac binds. */
const MANAGER_USER = 'machinist';
const SIM_DRIVER_USER = 'machinist-sim-driver';

/** A control plane of its own for pools of machines: the shipped roles are granted, and their users have credentials. */
export class Site implements AsyncDisposable {
  readonly plane: ControlPlane;
  /** As the administrator. */
  readonly api: Api;
  /** Of the manager's user. */
  readonly kubeconfig: string;
  /** Of the simulated cloud's user. */
  readonly driverKubeconfig: string;

  private constructor(plane: ControlPlane, kubeconfig: string, driverKubeconfig: string) {
    this.plane = plane;
    this.api = plane.connection.api();
    this.kubeconfig = kubeconfig;
    this.driverKubeconfig = driverKubeconfig;
  }

  /** Without kube-controller-manager: nobody tidies up after the manager. */
  static async open(options: { readonly crds?: CrdSet } = {}): Promise<Site> {
    const plane = await privateControlPlane({ ...options, controllerManager: false });
    const { connection } = plane;
    const site = new Site(
      plane,
      await connection.kubeconfigFor({ user: MANAGER_USER }),
      await connection.kubeconfigFor({ user: SIM_DRIVER_USER }),
    );
    for (const file of ['control-identity', 'target', 'sim-driver'] as const) await grant(site.api, file, 'default');
    return site;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api.close();
    await this.plane.stop();
  }
}
