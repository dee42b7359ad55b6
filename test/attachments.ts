import type { Api } from '../hack/control-plane/api.ts';

/** VolumeAttachments, which are of the whole cluster. */
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';

/** A volume that an attacher has attached to a Node; the VolumeAttachment has its name. */
export async function attachVolume(api: Api, name: string, nodeName: string): Promise<void> {
  const spec = { attacher: 'sim.example.com', nodeName, source: { persistentVolumeName: name } };
  await api.send('POST', ATTACHMENTS, { metadata: { name }, spec });
  await api.send('PATCH', `${ATTACHMENTS}/${name}/status`, { status: { attached: true } });
}

/** What the attacher does when the volume is off; fine for one that is gone already. */
export async function detachVolume(api: Api, name: string): Promise<void> {
  await api.send('PATCH', `${ATTACHMENTS}/${name}`, { metadata: { finalizers: null } });
  await api.request(`${ATTACHMENTS}/${name}`, { method: 'DELETE' });
}
