import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { Component } from '../../hack/control-plane/component.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { freePort } from '../../hack/control-plane/ports.ts';

/** Creates a bootstrap token as kubeadm does and returns it ("abcdef.0123456789abcdef"). */
export async function bootstrapToken(connection: Connection): Promise<string> {
  const [id, secret] = [randomBytes(3).toString('hex'), randomBytes(8).toString('hex')];
  const api = connection.api();
  const answer = await api.request('/api/v1/namespaces/kube-system/secrets', {
    method: 'POST',
    body: {
      metadata: { name: `bootstrap-token-${id}` },
      type: 'bootstrap.kubernetes.io/token',
      stringData: { 'token-id': id, 'token-secret': secret, 'usage-bootstrap-authentication': 'true' },
    },
  });
  await api.close();
  if (answer.status !== 201) throw new Error(`creating a bootstrap token: ${JSON.stringify(answer.body)}`);
  return `${id}.${secret}`;
}

/**
 * A real kubelet over an in-memory container runtime that joins with this token. Resolves when it runs; the Node is Ready a few
 * seconds later. It ends with the control plane's run; `stop('SIGKILL')` is a machine that dies.
 */
export async function startKubelet(plane: ControlPlane, name: string, token: string): Promise<Component> {
  const program = plane.connection.programs.kubemark?.path;
  if (program === undefined) throw new Error('start the control plane with programs: [kubemark]');
  const directory = join(plane.directory, 'kubelets', name);
  mkdirSync(directory, { recursive: true });
  const kubelet = new Component({
    name: `kubelet-${name}`,
    program,
    args: [
      '--morph=kubelet',
      `--name=${name}`,
      `--bootstrap-kubeconfig=${plane.connection.kubeconfigWithToken(`bootstrap-${name}`, token)}`,
      `--kubeconfig=${join(directory, 'kubeconfig')}`,
      `--cert-dir=${directory}`,
      `--kubelet-port=${await freePort()}`,
      `--kubelet-read-only-port=${await freePort()}`,
      '--use-host-image-service=false',
    ],
    directory,
    logFile: join(directory, 'kubelet.log'),
    run: plane.run,
    isReady: () => Promise.resolve(true),
    log: () => undefined,
  });
  await kubelet.start();
  return kubelet;
}
