import type nodeVm from 'node:vm';

/** What Node compiles texts with, and jest through it. */
type Vm = Pick<typeof nodeVm, 'SourceTextModule' | 'compileFunction'>;

/** As Node documents it: its types lack this. */
interface CompiledModule extends nodeVm.SourceTextModule {
  createCachedData(): Buffer;
}

/** What V8 made of a text. */
interface Compiled {
  readonly code: string;
  readonly data: Buffer;
}

/** What was compiled, by the name of its file. V8 looks at the length of a text only, so that the text itself is compared. */
class Memory {
  readonly #compiled = new Map<string, Compiled>();

  find(name: string, code: string): Buffer | undefined {
    const known = this.#compiled.get(name);
    return known?.code === code ? known.data : undefined;
  }

  keep(name: string, code: string, data: Buffer | undefined): void {
    if (data !== undefined) this.#compiled.set(name, { code, data });
  }
}

/**
 * Lets `vm` compile what it has compiled before from what V8 made of it. Jest loads all modules anew for each test file, which is what keeps
 * files apart; that each is also compiled anew takes a third of the unit level's CPU time, and keeps nothing apart.
 */
export function compileOnce(vm: Vm): void {
  const modules = new Memory();
  const functions = new Memory();
  const { compileFunction } = vm;
  vm.SourceTextModule = new Proxy(vm.SourceTextModule, {
    construct(SourceTextModule, [code, options = {}]: [string, nodeVm.SourceTextModuleOptions?]) {
      const { identifier = '' } = options;
      const cachedData = modules.find(identifier, code);
      if (cachedData !== undefined) {
        try {
          return new SourceTextModule(code, { ...options, cachedData });
        } catch (err) {
          // V8 has other flags since then.
          if (!isRejected(err)) throw err;
        }
      }
      const module = new SourceTextModule(code, options) as CompiledModule;
      modules.keep(identifier, code, module.createCachedData());
      return module;
    },
  });
  vm.compileFunction = (code, params, options = {}) => {
    const { filename = '' } = options;
    const cachedData = functions.find(filename, code);
    if (cachedData !== undefined) return compileFunction(code, params, { ...options, cachedData });
    const compiled = compileFunction(code, params, { ...options, produceCachedData: true });
    functions.keep(filename, code, compiled.cachedData);
    return compiled;
  };
}

function isRejected(err: unknown): boolean {
  return err instanceof Error && 'code' in err && err.code === 'ERR_VM_MODULE_CACHED_DATA_REJECTED';
}
