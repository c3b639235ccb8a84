"""One instance of a block, written as scalar or vector operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, MemRefType, UnitAttr, VectorType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.element import element_bytes, is_float
from ...dialects.index import IndexExpr
from ...dialects.interpret.loop import initial_value
from ...dialects.lookups import lookups_of
from ...dialects.loop_lanes import JOINED, SCALAR, SINGLE, TRANSPOSED, step_of
from ...dialects.target import LINE_BYTES, WIDEST_ACCESS_BYTES
from ...dialects.te import IndexOp, PredicateOp, YieldOp
from ..analysis.panels import Panel
from ..analysis.placement import in_bounds
from ._addresses import Address, Addresses
from ._block_plan import Access, BlockPlan
from ._block_values import ValueWriter
from ._branches import under
from ._chosen_values import needed_values
from ._held_values import Held, held_value, hold, memory_is_read
from ._quads import transposed
from ._shared_carries import last_iterations


class BodyWriter:
    """Writes block instances into the scopes of an `Addresses`."""

    def __init__(self, addresses: Addresses, buffers: Mapping[SSAValue, SSAValue], aligned: bool = False) -> None:
        self.at = addresses
        self.values = ValueWriter(addresses)
        self.buffers = buffers
        self.aligned = aligned
        """True where all vectors start at multiples of their size, as those of a GPU must."""
        self.backwards = False
        """True where lanes in registers are written from the last one on."""

    def _place(self, address: Address, value_type: Attribute) -> dict[str, Attribute]:
        """The properties of a load or store."""
        properties: dict[str, Attribute] = {
            "offset": kernel.int_attr(address.offset),
            "stride": kernel.int_attr(address.stride),
        }
        if self.aligned and isinstance(value_type, VectorType):
            known = address.multiple * element_bytes(kernel.element_of(value_type))
            properties["align"] = kernel.int_attr(gcd(known, WIDEST_ACCESS_BYTES))
        return properties

    # -- instances ----------------------------------------------------------------------------------------------------

    def update(self, plan: BlockPlan, lane_conditions: Sequence[IndexExpr], from_identity: bool) -> None:
        """Write one instance; `from_identity` where its outputs start afresh instead of from what they hold."""
        masks = [] if self._masks_stores_alone(plan) else self._masks(plan, lane_conditions)
        values = self._values(plan, masks)
        results = list(plan.block.yielded)
        if not plan.block.is_reduction:
            for write, result in zip(plan.writes, results, strict=True):
                if self._kind(write) == TRANSPOSED:
                    self._store_transposed(plan, write, values[result], lane_conditions)
                else:
                    self._store(write, values[result], masks, self.may_spill(plan, lane_conditions))
            return
        if plan.block.combiner.data == "custom":
            self._update_custom(plan, values, masks, from_identity)
            return
        spill = self.may_spill(plan, lane_conditions)
        for position, (write, result) in enumerate(zip(plan.writes, results, strict=True)):
            self._address(write)  # comes before what is read and joined
            product = plan.fused.get(result)
            if self._kind(write) == JOINED:
                value = self._joined_lanes(plan, position, self._wide(values, result, product), masks)
                old = self._old(plan, position, write, from_identity, [])
                joined = self.values.combine(plan.block.combiner.data, old, value)
                self._store(write, joined, [], False)
                continue
            old = self._old(plan, position, write, from_identity, [] if spill else masks)
            if product is not None:
                joined = self.values.fma(values[product[0]], values[product[1]], old)
            else:
                joined = self.values.combine(plan.block.combiner.data, old, values[result])
            self._store(write, joined, masks, spill)

    def copy_asynchronously(self, plan: BlockPlan, lane_conditions: Sequence[IndexExpr]) -> bool:
        """Write a copy from global to shared memory that the device does by itself; False where it cannot.

        Elements that the load pads become zero.
        """
        (load,), (write,) = plan.loads.values(), plan.writes
        if (
            load.positions
            or self._masks(plan, lane_conditions)
            or any(self.at.condition(c) is False for c in load.where)
        ):
            return False
        parts = [self.at.condition(c) for c in load.where if c not in self.at.known]
        tests = [p for p in parts if not isinstance(p, bool)]
        source, target = self._address(load), self._address(write)
        element = kernel.element_of(plan.block.yielded[0].type)
        lanes = self.at.lanes if target.stride else 1
        even = source.gather is None and target.gather is None and source.stride == target.stride <= 1
        size = lanes * element_bytes(element)
        aligned = all(a.multiple * element_bytes(element) % size == 0 for a in (source, target))
        if not even or not aligned or size not in kernel.ASYNC_BYTES:
            return False
        if any(isinstance(t.type, VectorType) for t in tests):
            return False
        test = self.at.conjunction(tests, False)
        buffers = self.buffers[load.buffer], self.buffers[write.buffer]
        here = self.at.here.block
        here.add_op(
            kernel.AsyncCopyOp(
                buffers[0], source.base, source.offset, buffers[1], target.base, target.offset, lanes, test
            )
        )
        return True

    # -- parts of a reduction, for who joins values in another way ----------------------------------------------------

    def value(self, plan: BlockPlan, number: int) -> SSAValue:
        """The value that one instance adds to its output of that number."""
        values = self._values(plan, [])
        result = plan.block.yielded[number]
        return self._wide(values, result, plan.fused.get(result))

    def identity(self, plan: BlockPlan, number: int) -> SSAValue:
        """Return the value that the output of that number starts from."""
        output = plan.block.outputs[number]
        assert isinstance(output.type, MemRefType)
        element = output.type.element_type
        value = initial_value(plan.block, number)
        if is_float(element):
            return self.values.constant(FloatAttr(float(value), element))
        assert isinstance(element, IntegerType)
        return self.values.constant(IntegerAttr(int(value), element))

    def combine(self, plan: BlockPlan, old: SSAValue, new: SSAValue) -> SSAValue:
        """Two values of an output of a block, joined as its combiner does."""
        return self.values.combine(plan.block.combiner.data, old, new)

    def output(self, plan: BlockPlan, number: int) -> SSAValue:
        """Return the value that the output of that number holds."""
        return self._old(plan, number, plan.writes[number], False, [])

    def store(self, access: Access, value: SSAValue) -> None:
        """Store an output."""
        self._store(access, value, [], False)

    def _masks(self, plan: BlockPlan, conditions: Sequence[IndexExpr]) -> list[SSAValue]:
        masks = []
        for condition in conditions:
            mask = self.at.condition(condition)
            assert mask is not False, "an instance that never runs is dropped before"
            if mask is True:
                continue
            if isinstance(mask.type, VectorType) and condition not in plan.block.masks:
                rule = f"lanes answer {condition} >= 0 each for itself, block '{plan.name}' is not masked by it"
                raise PassFailedException(f"lw-write-kernel: {rule}: run lw-vectorize-loops")
            masks.append(mask)
        return masks

    def may_spill(self, plan: BlockPlan, lane_conditions: Sequence[IndexExpr]) -> bool:
        """True where lanes that are off would write beyond the logical edge of the buffer, where nobody reads."""
        if not all(map(plan.is_edge, lane_conditions)):
            return False
        return all(
            not write.place.is_argument and self.in_bounds(write, self.at.fixed(write.offset)) for write in plan.writes
        )

    # -- values -------------------------------------------------------------------------------------------------------

    def _needed(self, plan: BlockPlan) -> tuple[set[Operation] | None, dict[Operation, SSAValue]]:
        """The operations of a body that an instance needs, where predicates are known here; None for all."""
        answers = {op: self._answer(plan.indices[op]) for op in plan.questions}
        known: dict[Operation | None, bool] = {op: answer for op, answer in answers.items() if answer is not None}
        return needed_values(plan.block.yielded, known) if known else (None, {})

    def _answer(self, conditions: Sequence[IndexExpr]) -> bool | None:
        """True where all conditions hold, False where one does not; None where that is not known now."""
        parts = [True if c in self.at.known else self.at.holds(c) for c in conditions]
        return False if False in parts else None if None in parts else True

    def _values(self, plan: BlockPlan, masks: list[SSAValue]) -> dict[SSAValue, SSAValue]:
        values: dict[SSAValue, SSAValue] = {}
        skipped = {id(v.owner) for v in plan.fused}
        needed, settled = self._needed(plan)
        for op in plan.ops:
            if isinstance(op, YieldOp) or id(op) in skipped or (needed is not None and op not in needed):
                continue
            if op in settled:
                values[op.results[0]] = values[settled[op]]
                continue
            if op in plan.loads:
                access = self._placed(plan.loads[op], values)
                values[op.results[0]] = self._load(access, masks)
                if op in plan.ahead:
                    self._prefetch(access, plan.ahead[op])
                if op in plan.panels:
                    self._prefetch_share(access, plan.panels[op])
            elif isinstance(op, IndexOp):
                values[op.result] = self.values.index(plan.indices[op][0], op.result.type)
            elif isinstance(op, PredicateOp):
                values[op.result] = self.values.predicate(plan.indices[op])
            elif isinstance(op, arith.ConstantOp):
                values[op.result] = self.values.constant(op.value)
            else:
                values[op.results[0]] = self.values.apply(op, [values[v] for v in op.operands])
        return values

    # -- memory -------------------------------------------------------------------------------------------------------

    def _placed(self, access: Access, values: Mapping[SSAValue, SSAValue]) -> Access:
        """The access with the positions that were read before, clamped, in the place of what its indices leave open."""
        if not access.positions:
            return access
        found = lookups_of(access.indices)
        return access.placed(
            {k: self.values.position(values[access.positions[k]], lookup.extent) for k, lookup in found.items()}
        )

    def _kind(self, access: Access) -> str:
        """The elements that lanes touch in this copy, as was decided."""
        if self.at.lane is None:
            return SCALAR
        if access.lanes is None:
            rule = f"which elements of '{access.place.name}' the lanes of loop '{self.at.lane}' touch is not decided"
            raise PassFailedException(f"lw-write-kernel: {rule}: run lw-vectorize-loops")
        other = (kind for kind, copies in access.lanes.other if self.at.is_copy(copies))
        return next(other, access.lanes.usual)

    def _address(self, access: Access) -> Address:
        return self.at.address(access.offset, step_of(self._kind(access)), access.place.layout.swizzle)

    def in_bounds(self, access: Access, fixed: IndexExpr) -> bool:
        """True where the element, whose flat position is `fixed`, is in its buffer for all values of the loops."""
        return in_bounds(fixed, access.indices, access.place, self.at.ranges, self.at.known)

    def _load(self, access: Access, masks: list[SSAValue]) -> SSAValue:
        buffer = access.buffer
        assert isinstance(buffer.type, MemRefType)
        element = buffer.type.element_type
        parts = [self.at.condition(c) for c in access.where if c not in self.at.known]
        if any(p is False for p in parts):
            zero = FloatAttr(0.0, element) if is_float(element) else IntegerAttr(0, element)
            return self.values.constant(zero)
        own = [p for p in parts if not isinstance(p, bool)]
        fixed = self.at.fixed(access.offset)
        if masks and (own or not self.in_bounds(access, fixed)):
            own = [*own, *masks]
        key = (buffer, fixed, self.at.lanes if self.at.lane in fixed.axes() else 1, tuple(own))
        known = self.at.here.loads.get(key)
        if known is None:
            known = self._load_at(buffer, self._address(access), element, own)
            self.at.here.loads[key] = known
        return known

    def _prefetch(self, access: Access, ahead: IndexExpr) -> None:
        """Ask for the line at a position that is read later, once for each line."""
        address = self.at.address(ahead, step_of(self._kind(access)), access.place.layout.swizzle)
        if address.gather is not None or address.stride > 1:
            return
        assert isinstance(access.buffer.type, MemRefType)
        line = address.offset * element_bytes(access.buffer.type.element_type) // LINE_BYTES
        scope = self.at.here
        if (address.base, line) not in scope.asked:
            scope.asked.add((address.base, line))
            scope.block.add_op(kernel.PrefetchOp(self.buffers[access.buffer], address.base, address.offset))

    def _prefetch_share(self, access: Access, panel: Panel) -> None:
        """Ask for the lines of the share of a panel that an iteration brings into the second-level cache, each once."""
        assert isinstance(access.buffer.type, MemRefType)
        in_a_line = LINE_BYTES // element_bytes(access.buffer.type.element_type)
        scope, start = self.at.here, panel.start + panel.place
        for line in range(-(-panel.share // in_a_line)):
            address = self.at.address(start + line * in_a_line)
            if (address.base, (address.offset, panel)) not in scope.asked:
                scope.asked.add((address.base, (address.offset, panel)))
                at = self.buffers[access.buffer], address.base, address.offset
                scope.block.add_op(kernel.PrefetchOp(*at, level=2))

    def _load_at(self, buffer: SSAValue, address: Address, element: Attribute, own: list[SSAValue]) -> SSAValue:
        wide = address.gather is not None or address.stride != 0 or any(isinstance(m.type, VectorType) for m in own)
        mask = self.at.conjunction(own, wide)
        new = self.buffers[buffer]
        target = kernel.vector_of(element, self.at.lanes) if wide else element
        if mask is not None:
            memory_is_read(self.at.here, buffer)
        elif (held := held_value(self.at.here, buffer, address, target)) is not None:
            return held
        if address.gather is not None:
            on = mask or self.values.all_lanes()
            return self.at.here.add(kernel.GatherOp(new, address.gather, on, target, address.near))
        operands = [new, address.base] if mask is None else [new, address.base, mask]
        return self.at.here.add(
            kernel.LoadOp.create(
                operands=operands,
                properties=self._place(address, target),
                result_types=[target],
            )
        )

    def _store(self, access: Access, value: SSAValue, masks: list[SSAValue], spill: bool) -> None:
        buffer = access.buffer
        scope = self.at.here
        held = scope.loads.pop((buffer, Held), None)
        for key in [k for k in scope.loads if k[0] is buffer]:  # type: ignore[index]
            del scope.loads[key]
        address = self._address(access)
        new = self.buffers[buffer]
        wide = address.gather is not None or address.stride != 0
        if not wide:
            self._store_at(access, address, value, None, held)
            return
        if not isinstance(value.type, VectorType):
            value = self.at.splat(value)
        mask = None if spill and self._kind(access) != SINGLE else self.at.conjunction(masks, True)
        if address.gather is not None:
            scope.block.add_op(kernel.ScatterOp(value, new, address.gather, mask or self.values.all_lanes()))
            return
        if mask is not None and access.place.scope == "local" and self.in_bounds(access, self.at.fixed(access.offset)):
            old = self._load_at(buffer, address, kernel.element_of(value.type), [])
            value = scope.add(kernel.SelectOp(mask, value, old))
            mask = held = None
        self._store_at(access, address, value, mask, held)

    def _store_at(self, access: Access, address: Address, value: SSAValue, mask: SSAValue | None, held: object) -> None:
        """Store to one place; `held` is what the buffer held before."""
        operands = [value, self.buffers[access.buffer], address.base, *([] if mask is None else [mask])]

        def store() -> kernel.StoreOp:
            attributes = {kernel.BACKWARDS: UnitAttr()} if self.backwards else {}
            return kernel.StoreOp.create(
                operands=operands, properties=self._place(address, value.type), attributes=attributes
            )

        if mask is None and access.place.scope == "local" and not self.aligned:
            hold(self.at.here, access.buffer, held if isinstance(held, Held) else None, address, value, store)
        else:
            self.at.here.block.add_op(store())

    def _masks_stores_alone(self, plan: BlockPlan) -> bool:
        """True where threads transpose what is in registers: conditions are on what they hold then."""
        transposes = any(self._kind(write) == TRANSPOSED for write in plan.writes)
        return transposes and all(load.place.scope == "local" for load in plan.loads.values())

    def _store_transposed(
        self, plan: BlockPlan, access: Access, value: SSAValue, conditions: Sequence[IndexExpr]
    ) -> None:
        """Store neighbours, which four threads get by a transpose of what they hold."""
        at, lane = self.at, self.at.lane
        assert lane is not None
        for key in [k for k in at.here.loads if k[0] is access.buffer]:  # type: ignore[index]
            del at.here.loads[key]
        whole = at.here.add(kernel.TransposeQuadOp(value))
        address = at.address(transposed(plan.block, at.fixed(access.offset), lane), 1)
        settled = [at.fixed(c) for c in conditions]
        ends = [at.condition(transposed(plan.block, c, lane, -1) if lane in c.axes() else c) for c in settled]
        mask = at.conjunction([end for end in ends if not isinstance(end, bool)], True)
        operands = [whole, self.buffers[access.buffer], address.base, *([] if mask is None else [mask])]
        properties = self._place(address, value.type)
        at.here.block.add_op(kernel.StoreOp.create(operands=operands, properties=properties))

    # -- reductions ---------------------------------------------------------------------------------------------------

    def _old(
        self, plan: BlockPlan, position: int, access: Access, from_identity: bool, masks: list[SSAValue]
    ) -> SSAValue:
        if from_identity:
            return self.identity(plan, position)
        buffer = access.buffer
        assert isinstance(buffer.type, MemRefType)
        own = [] if self.in_bounds(access, self.at.fixed(access.offset)) else masks
        return self._load_at(buffer, self._address(access), buffer.type.element_type, own)

    def _wide(
        self, values: Mapping[SSAValue, SSAValue], result: SSAValue, product: tuple[SSAValue, SSAValue] | None
    ) -> SSAValue:
        if product is None:
            return values[result]
        return self.values.multiply(values[product[0]], values[product[1]])

    def _joined_lanes(self, plan: BlockPlan, position: int, wide: SSAValue, masks: list[SSAValue]) -> SSAValue:
        if not isinstance(wide.type, VectorType):
            wide = self.at.splat(wide)
        mask = self.at.conjunction(masks, True)
        if mask is not None:
            neutral = self.at.splat(self.identity(plan, position))
            wide = self.at.here.add(kernel.SelectOp(mask, wide, neutral))
        return self.values.reduce_lanes(plan.block.combiner.data, wide)

    def _update_custom(
        self, plan: BlockPlan, values: dict[SSAValue, SSAValue], masks: list[SSAValue], from_identity: bool
    ) -> None:
        combine = plan.block.combine
        assert isinstance(combine, Region)
        arguments = combine.block.args
        count = len(plan.writes)
        mapped: dict[SSAValue, SSAValue] = {}
        for position, write in enumerate(plan.writes):
            mapped[arguments[position]] = self._carried(plan, position, write, from_identity, masks)
            mapped[arguments[count + position]] = values[plan.block.yielded[position]]
        joined: Sequence[SSAValue] = ()
        for op in combine.block.ops:
            if isinstance(op, YieldOp):
                joined = op.values
            elif isinstance(op, arith.ConstantOp):
                mapped[op.result] = self.values.constant(op.value)
            else:
                mapped[op.results[0]] = self.values.apply_once(op, [mapped[v] for v in op.operands])
        for position, (write, value) in enumerate(zip(plan.writes, joined, strict=True)):
            store = partial(self._store, write, mapped[value], masks, False)
            under(self.at, last_iterations(plan.block, position), store)

    def _carried(
        self, plan: BlockPlan, position: int, access: Access, from_identity: bool, masks: list[SSAValue]
    ) -> SSAValue:
        """The value of an output that a reduction carries; one that is carried once is loaded once for all."""
        if from_identity or masks or not last_iterations(plan.block, position):
            return self._old(plan, position, access, from_identity, masks)
        return self._load(access, [])
