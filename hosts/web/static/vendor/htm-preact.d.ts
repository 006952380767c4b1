/** What the vendored file exports, as far as the page uses it. htm templates are not typed inside. */
export type VNode = any;
export function html(strings: TemplateStringsArray, ...values: any[]): VNode;
export function h(type: any, props: object | null, ...children: any[]): VNode;
export function render(node: VNode, parent: Element): void;
export abstract class Component<P = {}, S = {}> {
  constructor(props: P, context?: any);
  props: Readonly<P> & { children?: any };
  state: Readonly<S>;
  base?: Element | Text;
  setState(change: Partial<S> | ((before: S) => Partial<S>), done?: () => void): void;
  forceUpdate(done?: () => void): void;
  abstract render(props?: any, state?: any): VNode;
}
export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, inputs?: readonly unknown[]): T;
export function useCallback<T extends (...given: any[]) => any>(made: T, inputs?: readonly unknown[]): T;
export function useReducer<S, A>(reducer: (state: S, action: A) => S, first: S): [S, (action: A) => void];
export interface Context<T> {
  Provider: any;
  Consumer: any;
  __type?: T;
}
export function createContext<T>(first: T): Context<T>;
export function useContext<T>(context: Context<T>): T;
export function useErrorBoundary(report?: (error: any) => void): [any, () => void];
