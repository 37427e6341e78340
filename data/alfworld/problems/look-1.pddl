(define (problem plan_look_1)
(:domain alfred)
(:objects
agent1 - agent
loc_start - location
loc_bar_0_bar_0_bar_1_bar_30 - location
loc_bar_1_bar_0_bar_1_bar_30 - location
Desk_bar__plus_00_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00 - receptacle
Drawer_bar__plus_01_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00 - receptacle
DeskLamp_bar__plus_00_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 - object
Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 - object
DeskType - rtype
DrawerType - rtype
DeskLampType - otype
PenType - otype
)
(:init
(= (total-cost) 0)
(atLocation agent1 loc_start)
(receptacleType Desk_bar__plus_00_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00 DeskType)
(receptacleAtLocation Desk_bar__plus_00_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00 loc_bar_0_bar_0_bar_1_bar_30)
(canContain DeskType PenType)
(receptacleType Drawer_bar__plus_01_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00 DrawerType)
(receptacleAtLocation Drawer_bar__plus_01_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00 loc_bar_1_bar_0_bar_1_bar_30)
(openable Drawer_bar__plus_01_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00)
(canContain DrawerType PenType)
(objectType DeskLamp_bar__plus_00_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 DeskLampType)
(inReceptacle DeskLamp_bar__plus_00_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 Desk_bar__plus_00_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00)
(objectAtLocation DeskLamp_bar__plus_00_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 loc_bar_0_bar_0_bar_1_bar_30)
(toggleable DeskLamp_bar__plus_00_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00)
(objectType Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 PenType)
(inReceptacle Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 Drawer_bar__plus_01_dot_00_bar__plus_00_dot_00_bar__plus_01_dot_00)
(objectAtLocation Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00 loc_bar_1_bar_0_bar_1_bar_30)
(pickupable Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00)
(heatable Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00)
(coolable Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00)
(cleanable Pen_bar__plus_01_dot_00_bar__plus_01_dot_00_bar__plus_02_dot_00)
)
(:goal (and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r))) (exists (?o - object ?a - agent) (and (objectType ?o PenType) (holds ?a ?o)))))
)
