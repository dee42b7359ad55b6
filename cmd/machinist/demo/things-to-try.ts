/** What the printed list needs to know. Paths as they are typed by the user. */
export interface DemoPlaces {
  readonly kubectl: string;
  readonly kubeconfig: string;
  readonly directory: string;
  readonly driver: 'local' | 'sim';
  /** Shell command that kills one machine the hard way. */
  readonly killOne: string;
}

/** The short list that the demo prints when its machines are up. */
export function thingsToTry({ kubectl, kubeconfig, directory, killOne }: DemoPlaces): string {
  return `
In another terminal:

  alias k='${kubectl} --kubeconfig ${kubeconfig}'

  k get mcd,mcs,mc,nodes                                  everything at a glance
  k describe machine -l demo=workers                      the story of each machine
  k scale mcd workers --replicas=5                        more machines; then --replicas=2
  k delete machine "$(k get mc -o name | head -1 | cut -d/ -f2)"     drained, deleted, replaced
  ${killOne}
                                                          a machine dies: Unknown, Failed, replaced
  k patch mcd workers --type=merge -p '{"spec":{"template":{"spec":{"class":{"name":"workers-b"}}}}}'
                                                          roll to another class, one at a time
  k apply -f ${directory}/manifests/broken-class.yaml           break class workers-b: see the next machine fail,
  k apply -f ${directory}/manifests/class-b.yaml                and mend it: it heals without a restart

Ctrl-C removes everything.
`;
}
